import { countedRows, type Database, type Page, type Rows, type Tx } from 'busbar/sdk'

export interface RestoreRow {
  readonly id: string
  readonly source_id: string
  readonly backup_id: string
  readonly status: 'running' | 'succeeded' | 'failed'
  readonly started_at: Date
  readonly begun_at: Date | null
  /** Since when what is restored serves, and takes what is written to it. */
  readonly restored_at: Date | null
  readonly attempts: number
  readonly finished_at: Date | null
  readonly error: string | null
  readonly log: string
}

const columns =
  'id, source_id, backup_id, status, started_at, begun_at, restored_at, attempts, finished_at, error, log'

/** All SQL on restores. */
export class RestoreStore {
  constructor(private readonly db: Database) {}

  async list(sourceId: string, page: Page): Promise<Rows<RestoreRow>> {
    const rows = await this.db.sql<RestoreRow>(
      `select ${columns} from $schema.restore where source_id = :sourceId order by started_at desc, id desc limit :limit offset :offset`,
      { sourceId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql('select count(*) as total from $schema.restore where source_id = :sourceId', { sourceId })
    )
  }

  async open(id: string): Promise<RestoreRow | undefined> {
    const [row] = await this.db.sql<RestoreRow>(`select ${columns} from $schema.restore where id = :id`, {
      id
    })
    return row
  }

  /** With `tx` it does not end before that, as of a backup. */
  async running(sourceId: string, tx?: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `select from $schema.restore where source_id = :sourceId and status = 'running'${tx === undefined ? '' : ' for share'}`,
      { sourceId },
      tx
    )
    return rows.length > 0
  }

  async insert(
    restore: Pick<RestoreRow, 'id' | 'source_id' | 'backup_id' | 'started_at'>,
    tx: Tx
  ): Promise<void> {
    await this.db.sql(
      `insert into $schema.restore (id, source_id, backup_id, status, started_at)
      values (:id, :source_id, :backup_id, 'running', :started_at)`,
      { ...restore },
      tx
    )
  }

  /** How often it has been taken up now; undefined where it has ended. */
  async take(id: string, at: Date): Promise<number | undefined> {
    const [row] = await this.db.sql<{ attempts: number }>(
      `update $schema.restore set begun_at = :at, seen_at = :at, attempts = attempts + 1 where id = :id and status = 'running' returning attempts`,
      { id, at }
    )
    return row?.attempts
  }

  /** The stop of the platform is no fault of it. */
  async putBack(id: string, log: string): Promise<void> {
    await this.db.sql(
      `update $schema.restore set begun_at = null, attempts = attempts - 1, log = :log where id = :id and status = 'running'`,
      { id, log }
    )
  }

  /** Until what it has changed can be put back; with why it has failed, where it has. Whether it is running. */
  async wait(
    id: string,
    waits: { readonly error: string | null; readonly log: string; readonly at: Date },
    tx: Tx
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.restore set error = :error, log = :log, seen_at = :at where id = :id and status = 'running' returning id`,
      { id, ...waits },
      tx
    )
    return rows.length > 0
  }

  /** For good: the first time counts. */
  async restored(id: string, at: Date, tx?: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.restore set restored_at = coalesce(restored_at, cast(:at as timestamptz)) where id = :id',
      { id, at },
      tx
    )
  }

  async writeLog(id: string, log: string, at: Date): Promise<void> {
    await this.db.sql(
      "update $schema.restore set log = :log, seen_at = :at where id = :id and status = 'running'",
      { id, log, at }
    )
  }

  /** False where what it is restored into was removed meanwhile. */
  async isWanted(id: string): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.restore r join $schema.source s on s.id = r.source_id where r.id = :id and s.deleted_at is null',
      { id }
    )
    return rows.length > 0
  }

  /** Whether it had not ended before. */
  async end(
    id: string,
    ended: {
      readonly status: 'succeeded' | 'failed'
      readonly at: Date
      readonly error: string | null
      readonly log: string
    },
    tx: Tx
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.restore set status = :status, finished_at = :at, error = :error, log = :log
      where id = :id and status = 'running' returning id`,
      { id, ...ended },
      tx
    )
    return rows.length > 0
  }

  async forget(sourceId: string, keep: number): Promise<void> {
    await this.db.sql(
      `delete from $schema.restore where id in (
        select id from $schema.restore where source_id = :sourceId and status <> 'running'
        order by started_at desc, id desc offset :keep)`,
      { sourceId, keep }
    )
  }
}
