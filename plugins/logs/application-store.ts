import { applicationTable } from 'busbar/api/applications'
import type { Database, ProjectId, TableRow } from 'busbar/sdk'
import { problems } from './problems.js'

/** What is asked of applications here. */
export class ApplicationStore {
  readonly #running

  constructor(db: Database) {
    this.#running = db.statement<
      TableRow<typeof applicationTable, 'container_deployment_id'>,
      [string, string]
    >(
      'running-deployment',
      `
      select a.container_deployment_id from ${applicationTable.name} a
      where a.id = $1 and a.project_id = $2 and a.deleting_at is null`
    )
  }

  /** The deployment whose container is the application's; undefined where there is none. 404 for one that is being deleted. */
  async runningDeployment(projectId: ProjectId, applicationId: string): Promise<string | undefined> {
    const [row] = await this.#running([applicationId, projectId])
    if (row === undefined) throw problems.applicationMissing({ applicationId })
    return row.container_deployment_id ?? undefined
  }
}
