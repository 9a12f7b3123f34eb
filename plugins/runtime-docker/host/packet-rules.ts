import type { HostPorts } from './host-ports.js'

export type Family = 'ipv4' | 'ipv6'

/** What containers of one installation may reach of the machine, for one kind of address. */
interface PacketPolicy {
  readonly family: Family
  /** Names the chains; see `installationTag`. */
  readonly tag: string
  /** Interfaces that containers are behind; `bb1a2b3+` is every one whose name begins like this. */
  readonly bridges: readonly string[]
  readonly ports: Exclude<HostPorts, 'all'>
}

interface Words {
  readonly linkLocal: readonly string[]
  readonly neighbours: readonly string[]
  readonly unreachable: string
}

const words: Readonly<Record<Family, Words>> = {
  ipv4: { linkLocal: ['169.254.0.0/16'], neighbours: [], unreachable: 'icmp-port-unreachable' },
  // Without neighbour discovery nothing is reached at all, allowed ports included.
  ipv6: {
    linkLocal: ['fd00:ec2::254/128', 'fd00:ec2::23/128'],
    neighbours: [135, 136].map(type => `-p ipv6-icmp -m icmp6 --icmpv6-type ${type} -j RETURN`),
    unreachable: 'icmp6-port-unreachable'
  }
}

const protocols = ['tcp', 'udp'] as const

/** `input`, `forward`: where a packet enters. `host`, `beyond`: what becomes of one that comes from our containers. */
const chainsOf = (tag: string) => ({
  input: `BUSBAR-${tag}-INPUT`,
  forward: `BUSBAR-${tag}-FORWARD`,
  host: `BUSBAR-${tag}-HOST`,
  beyond: `BUSBAR-${tag}-BEYOND`
})

/**
 * What `iptables-restore --noflush` is to read, so that `policy` holds: in one step, whatever was there before.
 * `saved` is what `iptables-save -t filter` says: how often our chains are jumped to is all that is taken from it.
 *
 * The rules only take away: what they let pass is then judged by the machine's own rules.
 */
export function rulesFor(saved: string, { family, tag, bridges, ports }: PacketPolicy): string {
  const { input, forward, host, beyond } = chainsOf(tag)
  const { linkLocal, neighbours, unreachable } = words[family]
  const from = (chain: string, to: string): string[] =>
    bridges.map(bridge => `-A ${chain} -i ${bridge} -j ${to}`)
  const allowed = ports.flatMap(({ first, last }) =>
    protocols.map(protocol => ({ protocol, range: first === last ? String(first) : `${first}:${last}` }))
  )
  return restoreInput([
    ...Object.values(chainsOf(tag)).map(chain => `:${chain} - [0:0]`),
    ...jumpRemovals(saved, tag),
    `-I INPUT 1 -j ${input}`,
    `-I ${forwardHook(saved)} 1 -j ${forward}`,
    ...from(input, host),
    ...from(forward, beyond),

    // Answers to whoever asked the container, the health check for one.
    `-A ${host} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN`,
    ...neighbours.map(rule => `-A ${host} ${rule}`),
    ...allowed.map(
      ({ protocol, range }) => `-A ${host} -p ${protocol} -m ${protocol} --dport ${range} -j RETURN`
    ),
    `-A ${host} -p tcp -j REJECT --reject-with tcp-reset`,
    `-A ${host} -j REJECT --reject-with ${unreachable}`,

    // Where clouds hand out the credentials of a machine; some answer DNS at the same address.
    ...linkLocal.flatMap(range => [
      ...protocols.map(
        protocol => `-A ${beyond} -d ${range} -p ${protocol} -m ${protocol} --dport 53 -j RETURN`
      ),
      `-A ${beyond} -d ${range} -j REJECT --reject-with ${unreachable}`
    ]),
    // A published port of some other container is one of the machine, even where the engine leads it on by itself.
    ...allowed.map(
      ({ protocol, range }) =>
        `-A ${beyond} -p ${protocol} -m conntrack --ctstate DNAT --ctorigdstport ${range} --ctdir ORIGINAL -j RETURN`
    ),
    `-A ${beyond} -m conntrack --ctstate DNAT --ctdir ORIGINAL -j REJECT --reject-with ${unreachable}`
  ])
}

/** The same, so that nothing of it is left; undefined when there is nothing. */
export function withoutRules(saved: string, tag: string): string | undefined {
  const present = Object.values(chainsOf(tag)).filter(chain => saved.includes(`\n:${chain} `))
  if (present.length === 0) return undefined
  return restoreInput([
    ...present.map(chain => `:${chain} - [0:0]`),
    ...jumpRemovals(saved, tag),
    ...present.map(chain => `-X ${chain}`)
  ])
}

/**
 * dockerd puts what it allows at the top of FORWARD, and this chain above that. An engine that has none
 * (no iptables, or nftables alone) puts nothing there.
 */
const userChain = 'DOCKER-USER'
const forwardHook = (saved: string): string => (saved.includes(`\n:${userChain} `) ? userChain : 'FORWARD')

function jumpRemovals(saved: string, tag: string): string[] {
  const { input, forward } = chainsOf(tag)
  const jumps = [`INPUT -j ${input}`, `${userChain} -j ${forward}`, `FORWARD -j ${forward}`]
  const lines = saved.split('\n')
  return jumps.flatMap(jump => lines.filter(line => line === `-A ${jump}`).map(() => `-D ${jump}`))
}

const restoreInput = (lines: readonly string[]): string => ['*filter', ...lines, 'COMMIT', ''].join('\n')
