import { applicationTable } from 'busbar/api/applications'
import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'

export interface VolumeRow {
  readonly id: string
  readonly name: string
  readonly mount_path: string
  readonly engine_name: string
  /** Null while it was never measured. */
  readonly size_bytes: number | null
  readonly created_at: Date
}

interface NewVolume extends Omit<VolumeRow, 'size_bytes'> {
  readonly application_id: string
}

/** What was never made has no files. */
const size = `
  case when exists (select 1 from $schema.engine_volume e where e.name = engine_name) then size_bytes::float8 else 0 end`
const columns = `id, name, mount_path, engine_name, ${size} as size_bytes, created_at`
const shown = 'application_id = :applicationId and deleting_at is null'

/** The volumes of applications, as users see them. */
export class VolumeStore {
  constructor(private readonly db: Database) {}

  async list(applicationId: string, page: Page): Promise<Rows<VolumeRow>> {
    const rows = await this.db.sql<VolumeRow>(
      `select ${columns} from $schema.volume where ${shown} order by name, id limit :limit offset :offset`,
      { applicationId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from $schema.volume where ${shown}`, { applicationId })
    )
  }

  async find(applicationId: string, id: string, tx: Tx): Promise<VolumeRow | undefined> {
    const [row] = await this.db.sql<VolumeRow>(
      `select ${columns} from $schema.volume where ${shown} and id = :id`,
      { applicationId, id },
      tx
    )
    return row
  }

  /** What the containers of an application that is there have: none of one that is being deleted. */
  async mounted(
    applicationId: string
  ): Promise<ReadonlyArray<Pick<VolumeRow, 'engine_name' | 'mount_path'>>> {
    return await this.db.sql(
      `
      select v.engine_name, v.mount_path from $schema.volume v join ${applicationTable.name} a on a.id = v.application_id
      where v.application_id = :applicationId and v.deleting_at is null and a.deleting_at is null order by v.mount_path`,
      { applicationId }
    )
  }

  async pathsOf(applicationId: string, tx: Tx): Promise<readonly string[]> {
    const rows = await this.db.sql<Pick<VolumeRow, 'mount_path'>>(
      `select mount_path from $schema.volume where ${shown}`,
      { applicationId },
      tx
    )
    return rows.map(row => row.mount_path)
  }

  /** Names of an application, those that are being deleted too. */
  async names(applicationId: string, tx: Tx): Promise<ReadonlyArray<{ name: string; isLeaving: boolean }>> {
    return await this.db.sql(
      `select name, deleting_at is not null as "isLeaving" from $schema.volume where application_id = :applicationId`,
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

  async insert(row: NewVolume, tx: Tx): Promise<void> {
    await this.db.table<NewVolume>('volume', tx).insert(row)
  }

  /** In the transaction that marks it. */
  async giveUpBackups(id: string, tx: Tx): Promise<void> {
    await this.db.sql('update $schema.volume set delete_backups = true where id = :id', { id }, tx)
  }

  /** Of all volumes of the installation; what the engine has not got is left alone. */
  async noteSizes(sizes: ReadonlyMap<string, number>, now: Date): Promise<void> {
    await this.db.sql(
      `
      update $schema.volume v set size_bytes = found.size, measured_at = :now
      from unnest(cast(:names as text[]), cast(:sizes as bigint[])) as found (name, size) where v.engine_name = found.name`,
      { names: [...sizes.keys()], sizes: [...sizes.values()], now }
    )
  }
}
