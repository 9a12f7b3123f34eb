import { projectTable } from 'busbar/api/projects'
import type { Database, ProjectId, TableRow, Tx } from 'busbar/sdk'

export interface DoomedRow {
  readonly id: string
  readonly project_id: string
  /** True once a deploy has succeeded: there may be containers and images. */
  readonly was_deployed: boolean
}

const columns = 'id, project_id, container_deployment_id is not null as was_deployed'
/** Previews refer to their parent, so they go first. */
const previewsFirst = 'order by parent_application_id nulls last, id'

/** Applications that are being deleted. */
export class RemovalStore {
  constructor(private readonly db: Database) {}

  /** Marks the application and its previews; false when it does not exist or is marked already. */
  async mark(projectId: ProjectId, id: string, now: Date, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql<{ id: string }>(
      `
      update $schema.application set deleting_at = :now
      where project_id = :projectId and (id = :id or parent_application_id = :id) and deleting_at is null returning id`,
      { projectId, id, now },
      tx
    )
    return rows.some(row => row.id === id)
  }

  async markProject(projectId: string, now: Date): Promise<void> {
    await this.db.sql(
      'update $schema.application set deleting_at = ? where project_id = ? and deleting_at is null',
      [now, projectId]
    )
  }

  async ofProject(projectId: string): Promise<DoomedRow[]> {
    return await this.db.sql<DoomedRow>(
      `select ${columns} from $schema.application where project_id = ? and deleting_at is not null ${previewsFirst}`,
      [projectId]
    )
  }

  /** The application with its previews. */
  async ofApplication(id: string): Promise<DoomedRow[]> {
    return await this.db.sql<DoomedRow>(
      `
      select ${columns} from $schema.application
      where (id = :id or parent_application_id = :id) and deleting_at is not null ${previewsFirst}`,
      { id }
    )
  }

  /** The user whose project it is in; undefined when it is gone. */
  async ownerOf(id: string, tx?: Tx): Promise<string | undefined> {
    const [row] = await this.db.sql<TableRow<typeof projectTable, 'user_id'>>(
      `select p.user_id from $schema.application a join ${projectTable.name} p on p.id = a.project_id where a.id = ?`,
      [id],
      tx
    )
    return row?.user_id
  }

  async all(): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      'select id from $schema.application where deleting_at is not null'
    )
    return rows.map(({ id }) => id)
  }

  /** Refused by PostgreSQL while any plugin's row refers to the application. */
  async remove(id: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'delete from $schema.application where id = ? and deleting_at is not null returning id',
      [id],
      tx
    )
    return rows.length > 0
  }
}
