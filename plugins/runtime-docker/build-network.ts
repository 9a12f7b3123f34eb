import type { BridgeNetworks } from './bridge-networks.js'
import { installationTag } from './host/installation-tag.js'

/** By which it is told from the network of a project. */
const label = 'busbar-network'

/**
 * The network in which the steps of builds run: all of this installation's, so they do not see each other there, and
 * no container of an application is in it. Made by the first build, and again when somebody has cleared it away.
 */
export class BuildNetwork {
  readonly #spec

  constructor(
    private readonly networks: BridgeNetworks,
    instanceId: string
  ) {
    // No project's: those begin with "busbar-".
    this.#spec = {
      name: `busbar.builds.${installationTag(instanceId)}`,
      owner: {},
      labels: { [label]: 'builds' },
      filter: [`${label}=builds`],
      keepsApart: true
    } as const
  }

  async ensure(): Promise<string> {
    return await this.networks.ensure(this.#spec)
  }

  /** Unless a build is under way. */
  async remove(): Promise<void> {
    for (const network of await this.networks.find(this.#spec.filter)) await this.networks.remove(network)
  }
}
