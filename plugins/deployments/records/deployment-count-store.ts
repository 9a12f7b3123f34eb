import type { Database } from 'busbar/sdk'
import type { DeploymentStatus } from '../api.js'
import { activeStatuses } from './deployment-state.js'

export class DeploymentCountStore {
  readonly #active

  constructor(db: Database) {
    // Written as the index has it, which holds these alone.
    this.#active = db.statement<{ status: DeploymentStatus; count: number }>(
      'deployment-count-active',
      `select status, count(*) as count from $schema.deployment where status in ('${activeStatuses.join("', '")}') group by status`
    )
  }

  /** How many are under way, in all processes; a status that none has is left out. */
  async active(): Promise<ReadonlyArray<{ readonly status: DeploymentStatus; readonly count: number }>> {
    return await this.#active([])
  }
}
