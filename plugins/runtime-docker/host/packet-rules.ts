import { type BuildHosts, metadataRanges, privateRanges } from './build-hosts.js'
import type { HostPorts } from './host-ports.js'
import type { Family, SavedTables } from './packet-filter.js'

/** What containers of one installation may do to the machine and by way of it, for one kind of address. */
export interface PacketPolicy {
  readonly family: Family
  /** Names the chains; see `installationTag`. */
  readonly tag: string
  /** Interfaces that containers are behind; `bb1a2b3+` is every one whose name begins like this. */
  readonly bridges: readonly string[]
  readonly ports: HostPorts
  readonly builds: BuildPolicy
  /** Open TCP connections of 16 neighbouring addresses, which are never of two projects. */
  readonly connections: number
}

interface BuildPolicy {
  /** Those interfaces that steps of builds are behind. */
  readonly bridges: readonly string[]
  readonly hosts: BuildHosts
  /** IPv4 ranges of the networks of projects. */
  readonly projects: readonly string[]
}

interface Words {
  readonly neighbours: readonly string[]
  readonly unreachable: string
  /** How many bits of an address its neighbours have in common. */
  readonly neighbourhood: number
}

const words: Readonly<Record<Family, Words>> = {
  ipv4: {
    neighbours: [],
    unreachable: 'icmp-port-unreachable',
    neighbourhood: 28
  },
  // Without neighbour discovery nothing is reached at all, allowed ports included.
  ipv6: {
    neighbours: [135, 136].map(type => `-p ipv6-icmp -m icmp6 --icmpv6-type ${type} -j RETURN`),
    unreachable: 'icmp6-port-unreachable',
    neighbourhood: 64
  }
}

const protocols = ['tcp', 'udp'] as const
/**
 * What has ended, or never had a beginning and an end, is forgotten after half a minute to two, and not counted as open
 * until then: its rate bounds how much there is of it.
 */
const connectionsPerFlowASecond = 8

/**
 * `input`, `forward`: where a packet enters. `flows`: what begins something new. `full`: what is too much of that.
 * `host`, `beyond`: what becomes of one that comes from our containers; `builds`: of one from a build, before that.
 */
const filterChains = (tag: string) => ({
  input: `BUSBAR-${tag}-INPUT`,
  forward: `BUSBAR-${tag}-FORWARD`,
  flows: `BUSBAR-${tag}-FLOWS`,
  full: `BUSBAR-${tag}-FULL`,
  host: `BUSBAR-${tag}-HOST`,
  builds: `BUSBAR-${tag}-BUILDS`,
  beyond: `BUSBAR-${tag}-BEYOND`
})
const sourceChain = (tag: string): string => `BUSBAR-${tag}-SOURCE`

/**
 * What `iptables-restore --noflush` is to read, so that containers reach what they may of the machine and no more: in
 * one step, whatever was there before. How often our chains are jumped to is all that is taken from what is saved.
 *
 * The rules only take away: what they let pass is then judged by the machine's own rules.
 */
export function reachRules({ filter }: SavedTables, { tag, bridges, ...policy }: PacketPolicy): string {
  const { input, forward, flows, host, builds, beyond } = filterChains(tag)
  const from = (chain: string, to: string, interfaces = bridges): string[] =>
    interfaces.map(bridge => `-A ${chain} -i ${bridge} -j ${to}`)
  return restoreInput('filter', [
    ...Object.values(filterChains(tag)).map(chain => `:${chain} - [0:0]`),
    ...jumpRemovals(filter, filterJumps(tag)),
    `-I INPUT 1 -j ${input}`,
    `-I ${forwardHook(filter)} 1 -j ${forward}`,
    ...from(input, flows),
    ...from(input, host),
    ...from(forward, flows),
    ...from(forward, builds, policy.builds.bridges),
    ...from(forward, beyond),
    ...buildRules({ ...policy, chain: builds }),
    ...(policy.ports === 'all' ? [] : portRules({ ...policy, ports: policy.ports, host, beyond }))
  ])
}

const dns = (where: string): string[] =>
  protocols.map(protocol => `-A ${where} -p ${protocol} -m ${protocol} --dport 53 -j RETURN`)

/**
 * What a step of a build may reach of private networks: it runs whatever a stranger wrote. A container asks the name server of
 * its machine from its own address, wherever that is: so DNS stays open.
 */
function buildRules({
  family,
  builds: { hosts, projects },
  chain
}: Pick<PacketPolicy, 'family' | 'builds'> & { readonly chain: string }): string[] {
  const reject = (range: string): string =>
    `-A ${chain} -d ${range} -j REJECT --reject-with ${words[family].unreachable}`
  return [
    `-A ${chain} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN`,
    // A published port is one of the machine, and judged as such.
    `-A ${chain} -m conntrack --ctstate DNAT --ctdir ORIGINAL -j RETURN`,
    // The engine keeps networks apart as well.
    ...(family === 'ipv4' ? projects.map(reject) : []),
    ...dns(chain),
    ...metadataRanges[family].map(reject),
    ...(hosts.allowsAll
      ? []
      : [
          ...hosts.allowed[family].map(range => `-A ${chain} -d ${range} -j RETURN`),
          ...privateRanges[family].map(reject)
        ])
  ]
}

function portRules({
  family,
  ports,
  host,
  beyond
}: Pick<PacketPolicy, 'family'> & {
  readonly ports: Exclude<HostPorts, 'all'>
  readonly host: string
  readonly beyond: string
}): string[] {
  const { neighbours, unreachable } = words[family]
  const allowed = ports.flatMap(({ first, last }) =>
    protocols.map(protocol => ({ protocol, range: first === last ? String(first) : `${first}:${last}` }))
  )
  return [
    // Answers to connections to the container, the health check's for one.
    `-A ${host} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN`,
    ...neighbours.map(rule => `-A ${host} ${rule}`),
    ...allowed.map(
      ({ protocol, range }) => `-A ${host} -p ${protocol} -m ${protocol} --dport ${range} -j RETURN`
    ),
    `-A ${host} -p tcp -j REJECT --reject-with tcp-reset`,
    `-A ${host} -j REJECT --reject-with ${unreachable}`,

    // Where clouds hand out the credentials of a machine; some answer DNS at the same address.
    ...metadataRanges[family].flatMap(range => [
      ...dns(`${beyond} -d ${range}`),
      `-A ${beyond} -d ${range} -j REJECT --reject-with ${unreachable}`
    ]),
    // A published port of some other container is one of the machine, even where the engine leads it on by itself.
    ...allowed.map(
      ({ protocol, range }) =>
        `-A ${beyond} -p ${protocol} -m conntrack --ctstate DNAT --ctorigdstport ${range} --ctdir ORIGINAL -j RETURN`
    ),
    `-A ${beyond} -m conntrack --ctstate DNAT --ctdir ORIGINAL -j REJECT --reject-with ${unreachable}`
  ]
}

/**
 * The same, after `reachRules`, against what a container could do to others by way of the machine:
 *
 * - A packet with the address of another container as its source would open a way to that one from outside, as what
 *   comes back counts as an answer. What comes from a bridge whose address lies elsewhere is dropped.
 * - The table of connections is one for the machine. When it is full no new connection is possible.
 *
 * Apart from the others, as these need modules that not every kernel has.
 */
export function guardRules({ raw }: SavedTables, policy: PacketPolicy): string {
  const { family, tag, bridges, connections } = policy
  const { flows, full } = filterChains(tag)
  const { unreachable, neighbourhood } = words[family]
  const source = sourceChain(tag)
  const begins = '-m conntrack --ctstate NEW'
  const flowsASecond = Math.max(1, Math.ceil(connections / connectionsPerFlowASecond))
  return [
    restoreInput('filter', [
      ...[flows, full].map(chain => `:${chain} - [0:0]`),
      `-A ${flows} -p tcp ${begins} -m connlimit --connlimit-above ${connections} --connlimit-mask ${neighbourhood} --connlimit-saddr -j ${full}`,
      `-A ${flows} ${begins} -m hashlimit --hashlimit-above ${flowsASecond}/sec --hashlimit-burst ${connections} --hashlimit-mode srcip --hashlimit-srcmask ${neighbourhood} --hashlimit-name busbar-${tag} -j ${full}`,
      `-A ${full} -p tcp -j REJECT --reject-with tcp-reset`,
      `-A ${full} -j REJECT --reject-with ${unreachable}`
    ]),
    restoreInput('raw', [
      `:${source} - [0:0]`,
      ...jumpRemovals(raw, rawJumps(tag)),
      `-I PREROUTING 1 -j ${source}`,
      ...bridges.map(bridge => `-A ${source} -i ${bridge} -m rpfilter --invert -j DROP`)
    ])
  ].join('')
}

/** The same, so that nothing of it is left; undefined when there is nothing. */
export function withoutRules({ filter, raw }: SavedTables, tag: string): string | undefined {
  const removal = (
    table: string,
    saved: string,
    chains: readonly string[],
    jumps: readonly string[]
  ): string => {
    const present = chains.filter(chain => saved.includes(`\n:${chain} `))
    if (present.length === 0) return ''
    return restoreInput(table, [
      ...present.map(chain => `:${chain} - [0:0]`),
      ...jumpRemovals(saved, jumps),
      ...present.map(chain => `-X ${chain}`)
    ])
  }
  const removals =
    removal('filter', filter, Object.values(filterChains(tag)), filterJumps(tag)) +
    removal('raw', raw, [sourceChain(tag)], rawJumps(tag))
  return removals === '' ? undefined : removals
}

/** What of it is an installation's, and what comes before that: while it is the same nothing has to be set again. */
export function ownRules({ filter, raw }: SavedTables, tag: string): string {
  const hooks = ['INPUT', forwardHook(filter), 'PREROUTING'].map(chain => `-A ${chain} `)
  const seen = new Set<string>()
  return `${filter}\n${raw}`
    .split('\n')
    .filter(line => {
      const hook = hooks.find(start => line.startsWith(start))
      const isFirst = hook !== undefined && !seen.has(hook)
      if (hook !== undefined) seen.add(hook)
      return isFirst || (line.startsWith('-A ') && line.includes(`BUSBAR-${tag}-`))
    })
    .join('\n')
}

/**
 * dockerd puts what it allows at the top of FORWARD, and this chain above that. An engine that has none
 * (no iptables, or nftables alone) puts nothing there.
 */
const userChain = 'DOCKER-USER'
const forwardHook = (saved: string): string => (saved.includes(`\n:${userChain} `) ? userChain : 'FORWARD')

function filterJumps(tag: string): readonly string[] {
  const { input, forward } = filterChains(tag)
  return [`INPUT -j ${input}`, `${userChain} -j ${forward}`, `FORWARD -j ${forward}`]
}

const rawJumps = (tag: string): readonly string[] => [`PREROUTING -j ${sourceChain(tag)}`]

function jumpRemovals(saved: string, jumps: readonly string[]): string[] {
  const lines = saved.split('\n')
  return jumps.flatMap(jump => lines.filter(line => line === `-A ${jump}`).map(() => `-D ${jump}`))
}

const restoreInput = (table: string, lines: readonly string[]): string =>
  [`*${table}`, ...lines, 'COMMIT', ''].join('\n')
