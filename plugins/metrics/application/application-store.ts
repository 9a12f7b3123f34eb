import { type ApplicationStatus, applicationTable } from 'busbar/api/applications'
import type { Database, ProjectId, TableRow } from 'busbar/sdk'

export type ApplicationRow = TableRow<
  typeof applicationTable,
  'id' | 'project_id' | 'container_deployment_id' | 'container_port'
> & { readonly status: ApplicationStatus }

/** One whose container runs. */
export interface RunningApplication {
  readonly id: string
  readonly projectId: string
  readonly deploymentId: string
}

/** An unhealthy one runs too: it is then that its figures are looked at. */
const runningStatuses: readonly ApplicationStatus[] = ['running', 'unhealthy']

const columns = 'a.id, a.project_id, a.status, a.container_deployment_id, a.container_port'

/** Undefined for one that does not run. */
export const runningOf = ({
  id,
  project_id: projectId,
  status,
  container_deployment_id: deploymentId
}: ApplicationRow): RunningApplication | undefined =>
  deploymentId !== null && runningStatuses.includes(status) ? { id, projectId, deploymentId } : undefined

/** Applications as their plugin has them. */
export class ApplicationStore {
  readonly #some
  readonly #running
  readonly #ofProject

  constructor(db: Database) {
    const alive = `from ${applicationTable.name} a where a.deleting_at is null`
    this.#some = db.statement<ApplicationRow, [ids: readonly string[]]>(
      'metrics-applications',
      `select ${columns} ${alive} and a.id = any($1)`
    )
    this.#running = db.statement<ApplicationRow, [statuses: readonly string[]]>(
      'metrics-running-applications',
      `select ${columns} ${alive} and a.status = any($1) and a.container_deployment_id is not null`
    )
    this.#ofProject = db.statement<ApplicationRow, [projectId: string]>(
      'metrics-applications-of-project',
      `select ${columns} ${alive} and a.project_id = $1`
    )
  }

  /** Those that are there. */
  async some(ids: readonly string[]): Promise<ApplicationRow[]> {
    return ids.length === 0 ? [] : await this.#some([ids])
  }

  async running(): Promise<RunningApplication[]> {
    return (await this.#running([runningStatuses])).map(runningOf).filter(one => one !== undefined)
  }

  async ofProject(projectId: ProjectId): Promise<ApplicationRow[]> {
    return await this.#ofProject([projectId])
  }
}
