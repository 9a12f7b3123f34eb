import type { ProjectScope, StatusCounts } from 'busbar/api/platform'
import type { Database } from 'busbar/sdk'
import type { ApplicationStatus } from './api.js'

interface CountRow {
  readonly status: ApplicationStatus
  readonly count: number
}

/** How many applications there are, by their status. */
export class StatusCountStore {
  constructor(private readonly db: Database) {}

  async count(scope: ProjectScope): Promise<StatusCounts> {
    const rows = await this.db.sql<CountRow>(
      `
      select status, count(*) as count from $schema.application
      where deleting_at is null and (cast(:scope as uuid[]) is null or project_id = any(cast(:scope as uuid[])))
      group by status`,
      { scope }
    )
    const of = (wanted: ApplicationStatus): number => rows.find(({ status }) => status === wanted)?.count ?? 0
    return {
      running: of('running'),
      unhealthy: of('unhealthy'),
      errored: of('error'),
      stopped: of('stopped'),
      inactive: of('inactive')
    }
  }
}
