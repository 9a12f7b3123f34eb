import { lookup } from 'node:dns/promises'
import type { ContainerRuntime, PublishedPort } from 'busbar/api/containers'
import { bounded, type OptionalHandle } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseStore } from '../records/database-store.js'
import type { PortRange, Settings } from '../settings.js'

interface ExternalReachParts {
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly store: Pick<DatabaseStore, 'external'>
  readonly config: Pick<Settings, 'external_bind' | 'external_ports'>
}

/** What is known of the place where ports are opened. */
interface Place {
  /** BUSBAR_DATABASE_BIND, and the address that it leads to. */
  readonly bind: string
  readonly address: string
  readonly range: PortRange | undefined
  /** As the engine publishes them of the platform's container; null where a port of the platform is one of the machine. */
  readonly published: readonly PublishedPort[] | null
}

interface Refusal {
  readonly reason: string
  readonly remedy: string
}

/** Null: any port that is free. */
type Ports = readonly number[] | null

/** The contract: nobody but the machine itself reaches it, and at this address. */
const ofMachine = '127.0.0.1'
const variables = 'BUSBAR_DATABASE_BIND and BUSBAR_DATABASE_PORTS'
const lookupMs = 5000

/** On which ports, if any, the machine and nobody else reaches what the platform opens. */
export class ExternalReach {
  constructor(private readonly parts: ExternalReachParts) {}

  /** Refuses where there is no port for one database more. */
  async check(databaseId: string): Promise<void> {
    const { ports } = await this.look()
    if (ports === null) return
    const others = (await this.parts.store.external()).filter(({ id }) => id !== databaseId)
    if (others.length >= ports.length)
      throw problems.noExternalAccess({
        reason: `${others.length} databases have external access, and there are ${ports.length} ports for it`,
        remedy: 'turn off that of another, or give more in BUSBAR_DATABASE_PORTS'
      })
  }

  /** What to listen on. Throws a problem where that is not known now, or leads nowhere. */
  async look(): Promise<{ readonly address: string; readonly ports: Ports }> {
    const { runtime, config } = this.parts
    const engine = runtime.get()
    if (engine === undefined) throw problems.containersOff({ plugin: 'containers' })
    const { external_bind: bind, external_ports: range } = config
    const published = await engine.platformPorts()
    const address = await addressOf(bind)
    const decided = decidePorts({ bind, address, range, published })
    if ('reason' in decided) throw problems.noExternalAccess({ ...decided })
    return { address, ports: decided.ports }
  }
}

/** Of IPv4: that is what the machine's port leads to. */
async function addressOf(bind: string): Promise<string> {
  const what = 'the address of BUSBAR_DATABASE_BIND'
  return await bounded(async () => (await lookup(bind, { family: 4 })).address, {
    ms: lookupMs,
    what
  }).catch((error: unknown) => {
    throw problems.noBindAddress({ reason: error instanceof Error ? error.message : String(error) })
  })
}

/** The ports of 127.0.0.1 of the machine that lead to the platform, and are reached from nowhere else; or why there are none. */
export function decidePorts({ bind, address, range, published }: Place): { readonly ports: Ports } | Refusal {
  const wanted = range === undefined ? null : numbersOf(range)
  if (published === null)
    return address === ofMachine
      ? { ports: wanted }
      : {
          reason: `BUSBAR_DATABASE_BIND is ${bind}, and only ${ofMachine} is out of the network's reach`,
          remedy: 'leave it out, and reach the machine by a tunnel of SSH'
        }
  if (isLoopback(address) || wanted === null)
    return {
      reason: `the platform runs in a container, and a port of ${address} is not one of the machine there`,
      remedy: `set ${variables}, and publish these ports on ${ofMachine} of the machine, as docker-compose.yml does`
    }
  if (address === '0.0.0.0')
    return {
      reason: `BUSBAR_DATABASE_BIND is ${bind}, and applications of every project reach the platform's container at some address`,
      remedy: 'set it to its address in a network that no application is in, as docker-compose.yml does'
    }
  return publishedOf(wanted, published)
}

function publishedOf(
  wanted: readonly number[],
  published: readonly PublishedPort[]
): { readonly ports: Ports } | Refusal {
  const places = (port: number) =>
    published.filter(({ containerPort, protocol }) => containerPort === port && protocol === 'tcp')
  const isOfMachine = (port: number): boolean =>
    places(port).some(({ host, hostPort }) => host === ofMachine && hostPort === port)
  const isOpen = (port: number): boolean => places(port).some(({ host }) => !isLoopback(host))
  const ports = wanted.filter(port => isOfMachine(port) && !isOpen(port))
  if (ports.length > 0) return { ports }
  const opened = wanted.find(isOpen)
  return opened === undefined
    ? {
        reason: `the platform runs in a container, and no port of BUSBAR_DATABASE_PORTS is published on ${ofMachine} of the machine`,
        remedy: `publish them there, each under its own number, as docker-compose.yml does`
      }
    : {
        reason: `the port ${opened} of the platform's container is published beyond ${ofMachine} of the machine, where the network reaches it`,
        remedy: `publish the ports of BUSBAR_DATABASE_PORTS on ${ofMachine} alone`
      }
}

const numbersOf = ({ first, last }: PortRange): number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index)

const isLoopback = (address: string): boolean => address.startsWith('127.') || address === '::1'
