import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'

/** A row; the keys are sealed. */
export interface DestinationRow {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly provider: string
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  readonly prefix: string
  readonly use_ssl: boolean
  readonly access_key: string | null
  readonly secret_key: string | null
  readonly created_at: Date
  readonly updated_at: Date
}

interface DestinationUse {
  readonly schedules: number
  readonly backups: number
}

const columns =
  'id, project_id, name, provider, endpoint, region, bucket, prefix, use_ssl, access_key, secret_key, created_at, updated_at'

export class DestinationStore {
  constructor(private readonly db: Database) {}

  async list(project: ProjectId, page: Page): Promise<Rows<DestinationRow>> {
    const rows = await this.db.sql<DestinationRow>(
      `select ${columns} from $schema.destination where project_id = :project order by name, id limit :limit offset :offset`,
      { project, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.destination where project_id = :project', {
        project
      })
    )
  }

  async find(project: string, id: string, tx?: Tx): Promise<DestinationRow | undefined> {
    const [row] = await this.db.sql<DestinationRow>(
      `select ${columns} from $schema.destination where project_id = :project and id = :id`,
      { project, id },
      tx
    )
    return row
  }

  /** Until `tx` ends no schedule and no backup comes to it. */
  async hold(project: string, id: string, tx: Tx): Promise<DestinationRow | undefined> {
    const [row] = await this.db.sql<DestinationRow>(
      `select ${columns} from $schema.destination where project_id = :project and id = :id for update`,
      { project, id },
      tx
    )
    return row
  }

  /** How many there are, counted under a lock, so that two at once do not pass a limit. */
  async count(project: ProjectId, tx: Tx): Promise<number> {
    await this.db.sql(
      "select pg_advisory_xact_lock(hashtextextended('backups.destination/' || :project, 0))",
      { project },
      tx
    )
    const [row] = await this.db.sql<{ total: number }>(
      'select count(*)::int as total from $schema.destination where project_id = :project',
      { project },
      tx
    )
    return row?.total ?? 0
  }

  /** False where the name is taken. */
  async insert(row: DestinationRow, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.destination (${columns})
      values (:id, :project_id, :name, :provider, :endpoint, :region, :bucket, :prefix, :use_ssl, :access_key, :secret_key, :created_at, :updated_at)
      on conflict (project_id, name) do nothing returning id`,
      { ...row },
      tx
    )
    return rows.length > 0
  }

  async isNameTaken(project: string, name: string, except: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.destination where project_id = :project and name = :name and id <> :except',
      { project, name, except },
      tx
    )
    return rows.length > 0
  }

  async update(row: DestinationRow, tx: Tx): Promise<void> {
    await this.db.sql(
      `update $schema.destination set name = :name, provider = :provider, endpoint = :endpoint, region = :region, bucket = :bucket,
        prefix = :prefix, use_ssl = :use_ssl, access_key = :access_key, secret_key = :secret_key, updated_at = :updated_at
      where id = :id`,
      { ...row },
      tx
    )
  }

  async use(id: string, tx?: Tx): Promise<DestinationUse> {
    const [row] = await this.db.sql<DestinationUse>(
      `select (select count(*)::int from $schema.config where destination_id = :id) as schedules,
        (select count(*)::int from $schema.backup
          where destination_id = :id and (status = 'running' or status = 'succeeded' and deleting_at is null)) as backups`,
      { id },
      tx
    )
    return row ?? { schedules: 0, backups: 0 }
  }

  /** What is still to be erased there is nobody's to erase any more; backups that failed there are known as before. */
  async remove(id: string, tx: Tx): Promise<void> {
    await this.db.sql(
      'delete from $schema.backup where destination_id = :id and deleting_at is not null',
      { id },
      tx
    )
    await this.db.sql(
      'update $schema.backup set destination_id = null, has_file = false where destination_id = :id',
      { id },
      tx
    )
    await this.db.sql('delete from $schema.destination where id = :id', { id }, tx)
  }
}
