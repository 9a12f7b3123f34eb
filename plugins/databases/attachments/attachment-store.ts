import { applicationTable } from 'busbar/api/applications'
import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'
import { type DatabaseRow, databaseColumns } from '../records/database-row.js'
import type { AttachmentAnswer } from '../schemas.js'

export type AttachmentVariables = AttachmentAnswer['variables']

const prefixed = databaseColumns
  .split(',')
  .map(column => `d.${column.trim()}`)
  .join(', ')

/** All SQL on which applications get the connection of which databases. */
export class AttachmentStore {
  constructor(private readonly db: Database) {}

  async list(databaseId: string, page: Page): Promise<Rows<AttachmentAnswer>> {
    const rows = await this.db.sql<AttachmentAnswer>(
      `select application_id, variables, created_at from $schema.attachment where database_id = :databaseId
      order by created_at, application_id limit :limit offset :offset`,
      { databaseId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.attachment where database_id = ?', [databaseId])
    )
  }

  /** False where there is no such application in the project. */
  async set(
    projectId: ProjectId,
    databaseId: string,
    applicationId: string,
    variables: AttachmentVariables,
    now: Date,
    tx: Tx
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.attachment (database_id, application_id, variables, created_at)
      select cast(:databaseId as uuid), a.id, cast(:variables as jsonb), cast(:now as timestamptz) from ${applicationTable.name} a
      where a.id = :applicationId and a.project_id = :projectId and a.deleting_at is null
      on conflict (database_id, application_id) do update set variables = excluded.variables
      returning application_id`,
      { projectId, databaseId, applicationId, variables: JSON.stringify(variables), now },
      tx
    )
    return rows.length > 0
  }

  async remove(databaseId: string, applicationId: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'delete from $schema.attachment where database_id = ? and application_id = ? returning application_id',
      [databaseId, applicationId],
      tx
    )
    return rows.length > 0
  }

  /** The ids of those that are attached, always in one order. */
  async applicationsOf(databaseId: string, tx: Tx): Promise<readonly string[]> {
    const rows = await this.db.sql<{ application_id: string }>(
      'select application_id from $schema.attachment where database_id = ? order by application_id',
      [databaseId],
      tx
    )
    return rows.map(row => row.application_id)
  }

  async removeOfApplication(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.attachment where application_id = ?', [applicationId])
  }

  /** What an application is attached to, the oldest first. */
  async ofApplication(
    applicationId: string
  ): Promise<ReadonlyArray<DatabaseRow & { readonly variables: AttachmentVariables }>> {
    return await this.db.sql(
      `select ${prefixed}, given.variables from $schema.attachment given join $schema.database d on d.id = given.database_id
      where given.application_id = ? and d.deleting_at is null order by given.created_at, d.id`,
      [applicationId]
    )
  }
}
