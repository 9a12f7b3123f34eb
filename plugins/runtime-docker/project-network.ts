import type { BridgeNetworks, Network } from './bridge-networks.js'
import { installationTag } from './host/installation-tag.js'
import type { Identity } from './identity.js'
import { problems } from './problems.js'

const maxNameLength = 63

/** `busbar-<slug>`; a slug that does not fit is cut and told apart by the project's id. */
export function networkName(project: { readonly id: string; readonly slug: string }): string {
  const plain = project.slug.replace(/[^a-zA-Z0-9_.-]+/g, '-')
  const whole = `busbar-${plain}`
  if (plain === project.slug && whole.length <= maxNameLength) return whole
  const suffix = `-${project.id.slice(0, 8)}`
  return whole.slice(0, maxNameLength - suffix.length) + suffix
}

/** Of its builds. No project's other network: those begin with "busbar-". */
const buildNetworkName = (instanceId: string, projectId: string): string =>
  `busbar.builds.${installationTag(instanceId)}.${projectId}`

/**
 * The private networks of each project: one for its containers, and from its first build on one for the steps of its
 * builds. A bridge each: a container can answer for all others of its bridge (ARP), whatever else is forbidden.
 */
export class ProjectNetworks {
  constructor(
    private readonly networks: BridgeNetworks,
    private readonly identity: Identity,
    private readonly instanceId: string
  ) {}

  async ensure(project: { readonly id: string; readonly slug: string }): Promise<string> {
    return await this.networks.ensure({
      name: networkName(project),
      projectId: project.id,
      purpose: 'services'
    })
  }

  async ensureForBuilds(projectId: string): Promise<string> {
    const name = buildNetworkName(this.instanceId, projectId)
    return await this.networks.ensure({ name, projectId, purpose: 'builds' })
  }

  /** The projects that have a network. */
  async owners(): Promise<readonly string[]> {
    return [
      ...new Set(
        (await this.networks.find())
          .map(network => this.identity.network(network)?.projectId)
          .filter(id => id !== undefined)
      )
    ]
  }

  /** `beforeRemoval` may take the platform's own container out of the network. */
  async remove(projectId: string, beforeRemoval: (networkId: string) => Promise<void>): Promise<void> {
    for (const network of await this.networks.find({ projectId })) {
      await beforeRemoval(network.Id)
      if (!(await this.networks.remove(network))) await this.#refuse(network)
    }
  }

  async #refuse(network: Network): Promise<never> {
    const containers = await this.networks.users(network)
    throw problems.networkInUse({
      name: network.Name,
      containers: containers.slice(0, 10).join(', ') || 'a container that is starting'
    })
  }
}
