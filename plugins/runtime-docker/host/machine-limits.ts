import { Serial } from 'busbar/sdk'
import { GroupKeeper, type GroupKeeperDependencies } from './group-keeper.js'
import { HostLimits, type HostLimitsDependencies } from './host-limits.js'

/** What keeps containers from their machine: rules of its packet filter, and limits of its control groups. */
export class MachineLimits {
  /** Host tools take those of another task that look as if they were left. */
  readonly #turns = new Serial()

  readonly packets: HostLimits
  readonly groups: GroupKeeper

  constructor(dependencies: HostLimitsDependencies & GroupKeeperDependencies) {
    this.packets = new HostLimits(dependencies)
    this.groups = new GroupKeeper(dependencies)
  }

  /** Before a container of a project starts, which has a network. */
  async ensure(projectId: string): Promise<void> {
    await this.#turns.run(async () => {
      await this.packets.ensure()
      await this.groups.ensure(projectId)
    })
  }

  /** Sets them anew. Without a network what is left of them is taken away. */
  async refresh(): Promise<void> {
    await this.#turns.run(async () => {
      await this.packets.refresh()
      await this.groups.refresh()
    })
  }
}
