import type { Database } from 'busbar/sdk'
import type { BuildStepRow } from '../schemas.js'
import { activeStatuses } from './deployment-state.js'

export class BuildStepStore {
  readonly #db: Database
  constructor(db: Database) {
    this.#db = db
  }

  /** Writes steps as they are now. One that has been written keeps its beginning. */
  async save(deploymentId: string, steps: readonly BuildStepRow[]): Promise<void> {
    await this.#db.sql(
      `
      insert into $schema.build_step (deployment_id, number, name, state, started_at, ended_at)
      select :deploymentId, number, name, state, started_at, ended_at
      from jsonb_to_recordset(:steps) as step (number integer, name text, state text, started_at timestamptz, ended_at timestamptz)
      on conflict (deployment_id, number) do update set state = excluded.state, ended_at = excluded.ended_at`,
      { deploymentId, steps: JSON.stringify(steps) }
    )
  }

  /** In their order. What the end of a deployment has cut off was cancelled, whoever could still say so. */
  async list(deploymentId: string): Promise<BuildStepRow[]> {
    return await this.#db.sql<BuildStepRow>(
      `
      select number, name, case when state = 'running' and status <> all(:active) then 'cancelled' else state end as state,
        step.started_at, coalesce(ended_at, finished_at) as ended_at
      from $schema.build_step as step join $schema.deployment as deployment on deployment.id = deployment_id
      where deployment_id = :deploymentId order by number`,
      { deploymentId, active: [...activeStatuses] }
    )
  }
}
