import { type ApplicationStatus, applicationTable } from 'busbar/api/applications'
import type { DeploymentCounter, EndedDeployments, ProjectScope } from 'busbar/api/platform'
import type { Database } from 'busbar/sdk'
import { activeStatuses } from './deployment-state.js'

const active = `('${activeStatuses.join("', '")}')`
const inScope = (column: string): string =>
  `(cast(:scope as uuid[]) is null or ${column} = any(cast(:scope as uuid[])))`

type Idle = Extract<ApplicationStatus, 'error' | 'stopped' | 'inactive'>

/** How many deployments there are, and how they have ended. */
export class DeploymentTallyStore implements DeploymentCounter {
  constructor(private readonly db: Database) {}

  /** By when they were begun, of which there is an index: none takes long. */
  async ended(scope: ProjectScope, since: Date): Promise<EndedDeployments> {
    const [row] = await this.db.sql<{ succeeded: number; failed: number; median: number | null }>(
      `
      select count(*) filter (where d.status = 'success') as succeeded, count(*) filter (where d.status = 'failed') as failed,
        percentile_cont(0.5) within group (order by extract(epoch from d.build_ended_at - d.build_started_at) * 1000)
          filter (where d.status = 'success' and d.build_ended_at is not null) as median
      from $schema.deployment d join ${applicationTable.name} a on a.id = d.application_id
      where d.started_at >= :since and a.deleting_at is null and ${inScope('d.project_id')}`,
      { scope, since }
    )
    return {
      succeeded: row?.succeeded ?? 0,
      failed: row?.failed ?? 0,
      medianBuildMs: Math.round(row?.median ?? 0)
    }
  }

  async failing(scope: ProjectScope): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      `
      select count(*) as total from ${applicationTable.name} a
      where a.deleting_at is null and ${inScope('a.project_id')} and
        (select d.status from $schema.deployment d where d.application_id = a.id order by d.started_at desc, d.id desc limit 1) = 'failed'`,
      { scope }
    )
    return row?.total ?? 0
  }

  async underWay(scope: ProjectScope): ReturnType<DeploymentCounter['underWay']> {
    const rows = await this.db.sql<{ status: Idle; count: number }>(
      `
      select a.status, count(*) as count from $schema.deployment d join ${applicationTable.name} a on a.id = d.application_id
      where d.status in ${active} and a.status in ('error', 'stopped', 'inactive') and a.deleting_at is null and ${inScope('d.project_id')}
      group by a.status`,
      { scope }
    )
    const of = (wanted: Idle): number => rows.find(({ status }) => status === wanted)?.count ?? 0
    return { errored: of('error'), stopped: of('stopped'), inactive: of('inactive') }
  }

  async total(): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>('select count(*) as total from $schema.deployment')
    return row?.total ?? 0
  }
}
