import { applicationTable } from 'busbar/api/applications'
import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'

/** A row; `content` is sealed. */
export interface FileMountRow {
  readonly id: string
  readonly mount_path: string
  readonly content: string
  readonly bytes: number
  readonly is_secret: boolean
  readonly file_mode: string
  readonly created_at: Date
}
export type FileMountChanges = Partial<Pick<FileMountRow, 'content' | 'bytes' | 'is_secret' | 'file_mode'>>

const columns = 'id, mount_path, content, bytes, is_secret, file_mode, created_at'

/** Of what is being deleted nothing is shown. */
const isThere = `
  exists (select 1 from ${applicationTable.name} a where a.id = application_id and a.deleting_at is null)`

export class FileMountStore {
  constructor(private readonly db: Database) {}

  async list(applicationId: string, page: Page): Promise<Rows<FileMountRow>> {
    const rows = await this.db.sql<FileMountRow>(
      `
      select ${columns} from $schema.file_mount where application_id = :applicationId
      order by mount_path, id limit :limit offset :offset`,
      { applicationId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.file_mount where application_id = :applicationId', {
        applicationId
      })
    )
  }

  /** Those of an application that is there: none of one that is being deleted. */
  async mounted(applicationId: string): Promise<readonly FileMountRow[]> {
    return await this.db.sql(
      `
      select ${columns.replaceAll(/\w+/g, 'f.$&')} from $schema.file_mount f
      join ${applicationTable.name} a on a.id = f.application_id and a.deleting_at is null
      where f.application_id = :applicationId order by f.mount_path`,
      { applicationId }
    )
  }

  async find(applicationId: string, id: string, tx?: Tx): Promise<FileMountRow | undefined> {
    const [row] = await this.db.sql<FileMountRow>(
      `select ${columns} from $schema.file_mount where application_id = :applicationId and id = :id and ${isThere}`,
      { applicationId, id },
      tx
    )
    return row
  }

  /** Paths and sizes alone. */
  async sizes(
    applicationId: string,
    tx: Tx
  ): Promise<ReadonlyArray<Pick<FileMountRow, 'id' | 'mount_path' | 'bytes'>>> {
    return await this.db.sql(
      'select id, mount_path, bytes from $schema.file_mount where application_id = :applicationId',
      { applicationId },
      tx
    )
  }

  async hasApplication(project: ProjectId, applicationId: string, tx?: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `select a.id from ${applicationTable.name} a where a.id = :applicationId and a.project_id = :project and a.deleting_at is null`,
      { applicationId, project },
      tx
    )
    return rows.length > 0
  }

  /** One change of the files of an application at a time, until `tx` ends. */
  async hold(applicationId: string, tx: Tx): Promise<void> {
    await this.db.sql(
      "select pg_advisory_xact_lock(hashtextextended('file_mounts.application/' || :applicationId, 0))",
      { applicationId },
      tx
    )
  }

  async insert(applicationId: string, row: FileMountRow, tx: Tx): Promise<void> {
    await this.db.table('file_mount', tx).insert({ ...row, application_id: applicationId })
  }

  async change(id: string, changes: FileMountChanges, tx: Tx): Promise<void> {
    await this.db.table<FileMountRow>('file_mount', tx).where({ id }).update(changes)
  }

  async remove(applicationId: string, id: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `delete from $schema.file_mount where application_id = :applicationId and id = :id and ${isThere} returning id`,
      { applicationId, id },
      tx
    )
    return rows.length > 0
  }

  async removeOfApplication(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.file_mount where application_id = ?', [applicationId])
  }
}
