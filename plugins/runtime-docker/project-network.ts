import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import { isStatus, readEngineError } from './engine-failure.js'
import { hostRanges } from './host-ranges.js'
import { instanceLabel, ownerFilter, ownerLabels, ownerOf } from './labels.js'
import { problems } from './problems.js'
import { allocateSubnet, parsePools, parseRange, type AddressRange } from './subnet.js'

export const defaultPools = '10.201.0.0/16'
const maxNameLength = 63
/** Each attempt lost a subnet or a name to somebody else who was creating a network at the same moment. */
const maxAttempts = 32

type Network = Docker.NetworkInspectInfo

/** `busbar-<slug>`; a slug that does not fit is cut and told apart by the project's id. */
export function networkName (project: { readonly id: string, readonly slug: string }): string {
  const plain = project.slug.replace(/[^a-zA-Z0-9_.-]+/g, '-')
  const whole = `busbar-${plain}`
  if (plain === project.slug && whole.length <= maxNameLength) return whole
  const suffix = `-${project.id.slice(0, 8)}`
  return whole.slice(0, maxNameLength - suffix.length) + suffix
}

/** The private network of each project: one bridge, one /26. */
export class ProjectNetworks {
  #last: Promise<unknown> = Promise.resolve()

  constructor (private readonly engine: EngineClient, private readonly instanceId: string, private readonly pools: string = defaultPools) {}

  async ensure (project: { readonly id: string, readonly slug: string }): Promise<string> {
    const [existing] = await this.find(project.id)
    if (existing !== undefined) return existing.Name
    // Two at a time would choose the same subnet.
    const created = this.#last.then(async () => await this.#create(project))
    this.#last = created.catch(() => undefined)
    return await created
  }

  /** The project's networks, oldest first; more than one only while two processes create it at once. */
  async find (projectId: string): Promise<readonly Network[]> {
    const label = [`${instanceLabel}=${this.instanceId}`, ...ownerFilter({ projectId })]
    const found = await this.engine.call('list networks', async docker => await docker.listNetworks({ filters: { label } }))
    return found.sort((a, b) => a.Created < b.Created ? -1 : 1)
  }

  /** The projects that have a network. */
  async owners (): Promise<readonly string[]> {
    const label = [`${instanceLabel}=${this.instanceId}`]
    const found = await this.engine.call('list networks', async docker => await docker.listNetworks({ filters: { label } }))
    return [...new Set(found.map(network => ownerOf(network.Labels ?? {}).projectId).filter(id => id !== undefined))]
  }

  /** `beforeRemoval` may take the platform's own container out of the network. */
  async remove (projectId: string, beforeRemoval: (networkId: string) => Promise<void>): Promise<void> {
    for (const { Id: id, Name: name } of await this.find(projectId)) {
      await beforeRemoval(id)
      const removed = await this.engine.call(`remove the network ${name}`, async docker => {
        await docker.getNetwork(id).remove()
        return true
      }, { absent: [404, 403] })
      if (removed === undefined) await this.#refuseWhileInUse(id)
    }
  }

  async #refuseWhileInUse (id: string): Promise<void> {
    const network: Network | undefined = await this.engine.call('inspect a network', async docker => await docker.getNetwork(id).inspect(), { absent: [404] })
    if (network === undefined) return
    const containers = Object.values(network.Containers ?? {}).map(({ Name }) => Name).sort()
    throw problems.networkInUse({ name: network.Name, containers: containers.slice(0, 10).join(', ') || 'a container that is starting' })
  }

  async #create (project: { readonly id: string, readonly slug: string }): Promise<string> {
    const pools = parsePools(this.pools)
    if (pools === undefined) throw problems.badSubnets({ value: this.pools })
    const name = networkName(project)
    const lost: AddressRange[] = []
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const networks: readonly Network[] = await this.engine.call('list networks', async docker => await docker.listNetworks())
      const same = networks.find(network => network.Name === name)
      if (same?.Labels?.['project-id'] === project.id && same.Labels[instanceLabel] === this.instanceId) return name
      if (same !== undefined) throw problems.networkNameTaken({ name })
      const subnet = allocateSubnet(pools, [...networks.flatMap(subnetsOf), ...await hostRanges(), ...lost])
      if (subnet === undefined) throw problems.subnetsExhausted({ pools: this.pools })
      if (await this.#tryCreate(project.id, name, subnet)) return await this.#keepOldest(project.id, name)
      const range = parseRange(subnet)
      if (range !== undefined) lost.push(range)
    }
    throw problems.subnetsExhausted({ pools: this.pools })
  }

  /** False when somebody else was faster. */
  async #tryCreate (projectId: string, name: string, subnet: string): Promise<boolean> {
    return await this.engine.call(`create the network ${name} (${subnet})`, async docker => {
      try {
        await docker.createNetwork({
          Name: name,
          CheckDuplicate: true,
          Driver: 'bridge',
          IPAM: { Driver: 'default', Config: [{ Subnet: subnet }] },
          Labels: { ...ownerLabels({ projectId }), [instanceLabel]: this.instanceId }
        })
        return true
      } catch (error) {
        const isLost = isStatus(error, 409) || /overlap|conflicts with network/i.test(readEngineError(error).words)
        if (isLost) return false
        throw error
      }
    })
  }

  // CheckDuplicate does not see a network that another process creates at the same moment.
  async #keepOldest (projectId: string, name: string): Promise<string> {
    const [, ...younger] = await this.find(projectId)
    for (const { Id: id } of younger) {
      await this.engine.call('remove a duplicate network', async docker => { await docker.getNetwork(id).remove() }, { absent: [403, 404] })
    }
    return name
  }
}

const subnetsOf = (network: Network): AddressRange[] =>
  (network.IPAM?.Config ?? []).map(({ Subnet }) => parseRange(Subnet ?? '')).filter(range => range !== undefined)
