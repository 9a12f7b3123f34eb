import { Serial } from 'busbar/sdk'
import { BridgeKeeper } from './bridge-keeper.js'
import { GroupKeeper, type GroupKeeperDependencies } from './group-keeper.js'
import { HostLimits, type HostLimitsDependencies } from './host-limits.js'

/** What keeps containers from their machine: rules of its packet filter, limits of its control groups, and bridges that learn nothing. */
export class MachineLimits {
  /** Host tools take those of another task that look as if they were left. */
  readonly #turns = new Serial()
  #isStopped = false

  readonly packets: HostLimits
  readonly groups: GroupKeeper
  readonly bridges: BridgeKeeper

  constructor(dependencies: HostLimitsDependencies & GroupKeeperDependencies) {
    this.packets = new HostLimits(dependencies)
    this.groups = new GroupKeeper(dependencies)
    this.bridges = new BridgeKeeper({
      ...dependencies,
      buildBridges: async () => await this.packets.buildBridges()
    })
  }

  /** Before a container of a project starts, which has a network. `bridge`: its bridge, where that is known. */
  async ensure(
    projectId: string,
    { forBuilds = false, bridge }: { readonly forBuilds?: boolean; readonly bridge?: string } = {}
  ): Promise<void> {
    await this.#turns.run(async () => {
      // Without its limits no container may start.
      if (this.#isStopped) throw new Error('the platform is stopping')
      await this.packets.ensure()
      await this.groups.ensure(projectId)
      if (forBuilds) await this.bridges.ensure(bridge)
    })
  }

  /** Sets them anew. Without a network what is left of them is taken away. */
  async refresh(): Promise<void> {
    await this.#turns.run(async () => {
      for (const keeper of [this.packets, this.groups, this.bridges])
        if (!this.#isStopped) await keeper.refresh()
    })
  }

  /** Begins nothing any more, and resolves when what is under way has ended: nothing is made after whoever stopped this has cleaned up. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#turns.run(() => {})
  }
}
