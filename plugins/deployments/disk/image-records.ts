import { applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import type { Database } from 'busbar/sdk'
import { activeStatuses } from '../records/deployment-state.js'
import type { ImageRecord } from './image-holdings.js'

const active = `('${activeStatuses.join("', '")}')`
/** Of each application: more than the retention keeps images of. */
const most = 16

/** Which images applications have by the record of their deployments, and whose applications they are. */
export class ImageRecords {
  constructor(private readonly db: Database) {}

  /** By application, the user whose project it is in. */
  async ownersOf(applicationIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.db.sql<{ readonly id: string; readonly owner_id: string }>(
      `select a.id, p.user_id as owner_id from ${applicationTable.name} a join ${projectTable.name} p on p.id = a.project_id
       where cast(a.id as text) = any(:applicationIds)`,
      { applicationIds: [...applicationIds] }
    )
    return new Map(rows.map(({ id, owner_id: ownerId }) => [id, ownerId]))
  }

  /** Of the deployments of an owner that are under way, serve or succeeded, the newest first. */
  async of(ownerId: string): Promise<readonly ImageRecord[]> {
    return await this.db.sql<ImageRecord>(
      `
      select application_id as "applicationId", id as "deploymentId", coalesce(image_tag, '') as reference,
        is_active as "isActive", is_serving as "isServing"
      from (
        select d.id, d.application_id, d.image_tag, d.started_at, d.status in ${active} as is_active,
          coalesce(a.container_deployment_id = d.id, false) as is_serving,
          row_number() over (partition by d.application_id order by d.started_at desc, d.id desc) as place
        from $schema.deployment d
        join ${applicationTable.name} a on a.id = d.application_id
        join ${projectTable.name} p on p.id = a.project_id
        where cast(p.user_id as text) = :ownerId
          and (d.status in ${active} or d.image_tag is not null and (d.status = 'success' or a.container_deployment_id = d.id))
      ) as newest
      where place <= ${most} or is_active or is_serving
      order by started_at desc, id desc`,
      { ownerId }
    )
  }
}
