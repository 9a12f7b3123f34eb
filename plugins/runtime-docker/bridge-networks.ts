import { Serial } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { isStatus, readEngineError } from './engine-failure.js'
import { bridgeNameOption, bridgeOf, newBridgeName } from './host/installation-tag.js'
import type { MachineLimits } from './host/machine-limits.js'
import type { RoutedRange } from './host-ranges.js'
import type { Identity } from './identity.js'
import { instanceLabel, ownerFilter, purposeLabel } from './labels.js'
import { problems } from './problems.js'
import {
  type AddressRange,
  allocateSubnet,
  buildsPrefix,
  contains,
  overlaps,
  type Pools,
  parseRange,
  projectPrefix
} from './subnet.js'

const prefixes: Readonly<Record<Purpose, number>> = { services: projectPrefix, builds: buildsPrefix }
/** Each attempt lost a subnet or a name to another client that was creating a network at the same moment. */
const maxAttempts = 32

export type Network = Docker.NetworkInspectInfo

/** What its containers are: those of applications and databases, or steps of builds, which do not reach each other. */
type Purpose = 'services' | 'builds'
interface BridgeSpec {
  readonly name: string
  readonly projectId: string
  readonly purpose: Purpose
}

interface Wanted {
  readonly projectId?: string
  readonly purpose?: Purpose
}

interface BridgeParts {
  readonly engine: EngineClient
  readonly instanceId: string
  /** Tells the networks of this installation from what is labelled like them. */
  readonly identity: Identity
  readonly limits: MachineLimits
  /** What the engine's machine sends somewhere already. */
  readonly routes: () => Promise<readonly RoutedRange[]>
  /** BUSBAR_SUBNETS. */
  readonly pools: Pools
}

/** The bridge networks of this installation, all of them of projects, and limited in what they reach of the machine. */
export class BridgeNetworks {
  /** Two at a time would choose the same subnet. */
  readonly #creations = new Serial()
  #lastSubnet: AddressRange | undefined

  constructor(private readonly parts: BridgeParts) {}

  /** The name of the network; made when there is none. No container may be started in it before this resolves. */
  async ensure(spec: BridgeSpec): Promise<string> {
    const [existing] = await this.find(spec)
    if (existing !== undefined) {
      await this.parts.limits.ensure(spec.projectId, {
        forBuilds: spec.purpose === 'builds',
        bridge: bridgeOf(existing)
      })
      return existing.Name
    }
    return await this.#creations.run(async () => await this.#create(spec))
  }

  /** Oldest first; more than one of a project and purpose only while two processes create it at once. */
  async find({ projectId, purpose }: Wanted = {}): Promise<readonly Network[]> {
    const { engine, instanceId, identity } = this.parts
    const label = [
      `${instanceLabel}=${instanceId}`,
      ...(projectId === undefined ? [] : ownerFilter({ projectId }))
    ]
    const found = await engine.call(
      'list networks',
      async docker => await docker.listNetworks({ filters: { label } })
    )
    return found
      .filter(network => identity.network(network) !== undefined)
      .filter(network => purpose === undefined || purposeOf(network) === purpose)
      .sort((a, b) => (a.Created < b.Created ? -1 : 1))
  }

  /** False when it is in use. */
  async remove({ Id: id, Name: name }: Network): Promise<boolean> {
    const removed = await this.parts.engine.call(
      `remove the network ${name}`,
      async docker => {
        await docker.getNetwork(id).remove()
        return true
      },
      { absent: [404, 403] }
    )
    return removed ?? (await this.#inspect(id)) === undefined
  }

  async #inspect(id: string): Promise<Network | undefined> {
    return await this.parts.engine.call(
      'inspect a network',
      async docker => (await docker.getNetwork(id).inspect()) as Network,
      { absent: [404] }
    )
  }

  /** The names of the containers in it. */
  async users({ Id: id }: Network): Promise<readonly string[]> {
    return Object.values((await this.#inspect(id))?.Containers ?? {})
      .map(({ Name }) => Name)
      .sort()
  }

  async #create(spec: BridgeSpec): Promise<string> {
    const { engine, instanceId, identity, limits, routes, pools } = this.parts
    const { name, projectId, purpose } = spec
    const prefix = prefixes[purpose]
    const wanted = [`${instanceLabel}=${instanceId}`, ...ownerFilter({ projectId })]
    const routed = await routes()
    const lost: AddressRange[] = []
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const networks: readonly Network[] = await engine.call(
        'list networks',
        async docker => await docker.listNetworks()
      )
      const same = networks.find(network => network.Name === name)
      if (
        same !== undefined &&
        !(
          identity.network(same) !== undefined &&
          purposeOf(same) === purpose &&
          wanted.every(label => hasLabel(same, label))
        )
      )
        throw problems.networkNameTaken({ name })
      if (same === undefined) {
        const used = [...networks.flatMap(subnetsOf), ...lost]
        const taken = [...used, ...routed]
        const subnet =
          allocateSubnet(pools.ranges, [...taken, ...this.#handedOut(pools.ranges)], prefix) ??
          allocateSubnet(pools.ranges, taken, prefix)
        if (subnet === undefined) throw exhausted(prefix, pools, used, routed)
        if (!(await this.#tryCreate(spec, subnet))) {
          const range = parseRange(subnet)
          if (range !== undefined) lost.push(range)
          continue
        }
        this.#lastSubnet = parseRange(subnet)
        await this.#keepOldest(spec)
      }
      // With its first network an installation gets the rules that hold for all; without any it has lost them again.
      const isFirst = !networks.some(network => identity.network(network) !== undefined)
      await (isFirst ? limits.refresh() : limits.ensure(projectId, { forBuilds: purpose === 'builds' }))
      return name
    }
    throw problems.subnetsExhausted({ prefix, pools: pools.text })
  }

  /**
   * What lies before the subnet that was given last, while there is more behind it: the machine may remember ways to an
   * address for minutes after its container is gone, and the next project is not to be at the end of them.
   */
  #handedOut(pools: readonly AddressRange[]): AddressRange[] {
    const last = this.#lastSubnet
    if (last === undefined) return []
    const at = pools.findIndex(pool => contains(pool, last))
    return pools.slice(0, at + 1).map((pool, n) => (n < at ? pool : { first: pool.first, last: last.last }))
  }

  /** False when another client was faster. */
  async #tryCreate({ name, projectId, purpose }: BridgeSpec, subnet: string): Promise<boolean> {
    const { engine, instanceId, identity } = this.parts
    return await engine.call(`create the network ${name} (${subnet})`, async docker => {
      try {
        await docker.createNetwork({
          Name: name,
          CheckDuplicate: true,
          Driver: 'bridge',
          IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
          Options: {
            [bridgeNameOption]: newBridgeName(instanceId, { forBuilds: purpose === 'builds' }),
            ...(purpose === 'builds' && { 'com.docker.network.bridge.enable_icc': 'false' })
          },
          Labels: {
            ...identity.ofNetwork({ projectId }, name),
            ...(purpose === 'builds' && { [purposeLabel]: purpose })
          }
        })
        return true
      } catch (error) {
        const isLost =
          isStatus(error, 409) || /overlap|conflicts with network/i.test(readEngineError(error).words)
        if (isLost) return false
        throw error
      }
    })
  }

  // CheckDuplicate does not see a network that another process creates at the same moment.
  async #keepOldest(spec: BridgeSpec): Promise<void> {
    const [, ...younger] = await this.find(spec)
    for (const network of younger) await this.remove(network)
  }
}

/** Names the routes when it is they that leave no room. */
function exhausted(
  prefix: number,
  { text, ranges }: Pools,
  used: readonly AddressRange[],
  routed: readonly RoutedRange[]
): Error {
  if (allocateSubnet(ranges, used, prefix) === undefined)
    return problems.subnetsExhausted({ prefix, pools: text })
  const foreign = routed.filter(
    route => ranges.some(pool => overlaps(pool, route)) && !used.some(network => contains(network, route))
  )
  return problems.subnetsRouted({
    prefix,
    pools: text,
    routes: foreign
      .slice(0, 5)
      .map(({ name }) => name)
      .join(', ')
  })
}

const purposeOf = ({ Labels }: Network): Purpose =>
  Labels?.[purposeLabel] === 'builds' ? 'builds' : 'services'

const hasLabel = ({ Labels }: Network, label: string): boolean =>
  Object.entries(Labels ?? {}).some(([key, value]) => label === `${key}=${value}`)

const subnetsOf = (network: Network): AddressRange[] =>
  (network.IPAM?.Config ?? [])
    .map(({ Subnet }) => parseRange(Subnet ?? ''))
    .filter(range => range !== undefined)
