import { applicationTable } from 'busbar/api/applications'
import { projectTable, whereReachable } from 'busbar/api/projects'
import {
  type Clock,
  countedRows,
  type Database,
  LargeTotals,
  type Page,
  type Reach,
  type Rows
} from 'busbar/sdk'
import type { Knex } from 'knex'
import type { GlobalDeployment } from '../schemas.js'
import type { GlobalFilter } from './deployment-filter.js'

/** Deployments across applications. */
export class GlobalDeploymentStore {
  readonly #totals: LargeTotals

  constructor(
    private readonly db: Database,
    clock: Pick<Clock, 'elapsed'>
  ) {
    this.#totals = new LargeTotals(clock)
  }

  /** As far as the caller reaches; newest first. */
  async list(reach: Reach, filter: GlobalFilter, page: Page): Promise<Rows<GlobalDeployment>> {
    const rows: GlobalDeployment[] = await this.#all(reach, filter)
      .select(
        'deployment.id',
        'deployment.application_id',
        'application.name as application_name',
        'application.slug as application_slug',
        'deployment.project_id',
        'project.name as project_name',
        'deployment.status',
        'deployment.triggered_by',
        'deployment.image_tag',
        'deployment.commit_sha',
        'deployment.commit_message',
        'deployment.commit_author',
        'deployment.error_message',
        'deployment.started_at',
        'deployment.finished_at'
      )
      .orderBy([
        { column: 'deployment.started_at', order: 'desc' },
        { column: 'deployment.id', order: 'desc' }
      ])
      .limit(page.limit)
      .offset(page.offset)
    return await countedRows(
      page,
      rows.map(row => ({ ...row, build_logs: null })),
      () =>
        this.#totals.of(
          JSON.stringify([reach, filter]),
          async () => await this.#all(reach, filter).count<Array<{ total: number }>>('* as total')
        )
    )
  }

  /** All that the caller reaches and the filter lets through. */
  #all(reach: Reach, filter: GlobalFilter): Knex.QueryBuilder<GlobalDeployment, GlobalDeployment[]> {
    const query = this.db
      .table<GlobalDeployment>('deployment')
      // Raw, as knex would look for joined tables in this plugin's schema.
      .joinRaw(`join ${applicationTable.name} as application on application.id = deployment.application_id`)
      .joinRaw(`join ${projectTable.name} as project on project.id = deployment.project_id`)
      .whereNull('application.deleting_at')
    whereReachable(query, reach, 'project')
    if (filter.projectId !== undefined) query.where('deployment.project_id', filter.projectId)
    if (filter.applicationId !== undefined) query.where('deployment.application_id', filter.applicationId)
    if (filter.status !== undefined) query.where('deployment.status', filter.status)
    if (filter.from !== undefined) query.where('deployment.started_at', '>=', filter.from)
    if (filter.to !== undefined) query.where('deployment.started_at', '<', filter.to)
    const { pattern } = filter
    if (pattern !== undefined) {
      query.where(any =>
        any
          .whereILike('deployment.commit_sha', pattern)
          .orWhereILike('deployment.commit_message', pattern)
          .orWhereILike('application.name', pattern)
      )
    }
    return query
  }
}
