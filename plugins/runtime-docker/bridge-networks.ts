import type Docker from 'dockerode'
import type { Owner } from './api.js'
import type { EngineClient } from './engine-client.js'
import { isStatus, readEngineError } from './engine-failure.js'
import type { HostLimits } from './host/host-limits.js'
import { newBridgeName } from './host/installation-tag.js'
import type { RoutedRange } from './host-ranges.js'
import type { Identity } from './identity.js'
import { instanceLabel } from './labels.js'
import { problems } from './problems.js'
import { type AddressRange, allocateSubnet, contains, overlaps, parsePools, parseRange } from './subnet.js'

const defaultPools = '10.201.0.0/16'
/** Each attempt lost a subnet or a name to somebody else who was creating a network at the same moment. */
const maxAttempts = 32

export type Network = Docker.NetworkInspectInfo

interface BridgeSpec {
  readonly name: string
  readonly owner: Owner
  /** Beside those of the owner and the installation. */
  readonly labels?: Readonly<Record<string, string>>
  /** Those of them by which it is found again, as the engine's filter takes them: `project-id=…`. */
  readonly filter: readonly string[]
  /** Its containers do not reach each other. */
  readonly keepsApart?: true
}

interface BridgeParts {
  readonly engine: EngineClient
  readonly instanceId: string
  /** Tells the networks of this installation from what is labelled like them. */
  readonly identity: Identity
  readonly limits: HostLimits
  /** What the engine's machine sends somewhere already. */
  readonly routes: () => Promise<readonly RoutedRange[]>
  /** BUSBAR_SUBNETS. */
  readonly pools?: string | undefined
}

/** The bridge networks of this installation: each a /26, and limited in what it reaches of the machine. */
export class BridgeNetworks {
  #last: Promise<unknown> = Promise.resolve()

  constructor(private readonly parts: BridgeParts) {}

  /** The name of the network; made when there is none. No container may be started in it before this resolves. */
  async ensure(spec: BridgeSpec): Promise<string> {
    const [existing] = await this.find(spec.filter)
    if (existing !== undefined) {
      await this.parts.limits.ensure()
      return existing.Name
    }
    // Two at a time would choose the same subnet.
    const created = this.#last.then(async () => await this.#create(spec))
    this.#last = created.catch(() => undefined)
    return await created
  }

  /** Those with these labels, oldest first; more than one of a kind only while two processes create it at once. */
  async find(filter: readonly string[] = []): Promise<readonly Network[]> {
    const { engine, instanceId, identity } = this.parts
    const label = [`${instanceLabel}=${instanceId}`, ...filter]
    const found = await engine.call(
      'list networks',
      async docker => await docker.listNetworks({ filters: { label } })
    )
    return found
      .filter(network => identity.network(network) !== undefined)
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
    const { engine, instanceId, identity, limits, routes } = this.parts
    const poolsText = this.parts.pools ?? defaultPools
    const pools = parsePools(poolsText)
    if (pools === undefined) throw problems.badSubnets({ value: poolsText })
    const { name } = spec
    const wanted = [`${instanceLabel}=${instanceId}`, ...spec.filter]
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
        !(identity.network(same) !== undefined && wanted.every(label => hasLabel(same, label)))
      )
        throw problems.networkNameTaken({ name })
      if (same === undefined) {
        const used = [...networks.flatMap(subnetsOf), ...lost]
        const subnet = allocateSubnet(pools, [...used, ...routed])
        if (subnet === undefined) throw exhausted(poolsText, pools, used, routed)
        if (!(await this.#tryCreate(spec, subnet))) {
          const range = parseRange(subnet)
          if (range !== undefined) lost.push(range)
          continue
        }
        await this.#keepOldest(spec)
      }
      // With its first network an installation gets the rules that hold for all; without any it has lost them again.
      const isFirst = !networks.some(network => identity.network(network) !== undefined)
      await (isFirst ? limits.refresh() : limits.ensure())
      return name
    }
    throw problems.subnetsExhausted({ pools: poolsText })
  }

  /** False when somebody else was faster. */
  async #tryCreate({ name, owner, labels, keepsApart }: BridgeSpec, subnet: string): Promise<boolean> {
    const { engine, instanceId, identity } = this.parts
    return await engine.call(`create the network ${name} (${subnet})`, async docker => {
      try {
        await docker.createNetwork({
          Name: name,
          CheckDuplicate: true,
          Driver: 'bridge',
          IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
          Options: {
            'com.docker.network.bridge.name': newBridgeName(instanceId),
            ...(keepsApart === true && { 'com.docker.network.bridge.enable_icc': 'false' })
          },
          Labels: { ...identity.ofNetwork(owner, name), ...labels }
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
  async #keepOldest({ filter }: BridgeSpec): Promise<void> {
    const [, ...younger] = await this.find(filter)
    for (const network of younger) await this.remove(network)
  }
}

/** Names the routes when it is they that leave no room. */
function exhausted(
  text: string,
  pools: readonly AddressRange[],
  used: readonly AddressRange[],
  routed: readonly RoutedRange[]
): Error {
  if (allocateSubnet(pools, used) === undefined) return problems.subnetsExhausted({ pools: text })
  const foreign = routed.filter(
    route => pools.some(pool => overlaps(pool, route)) && !used.some(network => contains(network, route))
  )
  return problems.subnetsRouted({
    pools: text,
    routes: foreign
      .slice(0, 5)
      .map(({ name }) => name)
      .join(', ')
  })
}

const hasLabel = ({ Labels }: Network, label: string): boolean =>
  Object.entries(Labels ?? {}).some(([key, value]) => label === `${key}=${value}`)

const subnetsOf = (network: Network): AddressRange[] =>
  (network.IPAM?.Config ?? [])
    .map(({ Subnet }) => parseRange(Subnet ?? ''))
    .filter(range => range !== undefined)
