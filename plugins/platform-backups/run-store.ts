import { countedRows, type Database, type Page, type Rows, type Tx } from 'busbar/sdk'
import type { RunAnswer } from './schemas.js'

/** A run that has ended. */
interface EndedRun {
  readonly status: 'succeeded' | 'failed'
  readonly finished_at: Date
  readonly size_bytes: number
  readonly error: string | null
  readonly log: string
}

/** A run that is not over, as who takes it up needs it. */
export interface OpenRun {
  readonly id: string
  readonly begun_at: Date | null
  readonly file: string | null
  readonly remote_key: string | null
  readonly log: string
}

interface LastRuns {
  readonly last_succeeded_at: Date | null
  readonly last_attempted_at: Date | null
  readonly last_error: string | null
}

const shown = `id, started_at, finished_at, status, case when is_uploaded then remote_key end as remote_key,
  size_bytes::float8 as size_bytes, error, log, encrypted`

/** All SQL on runs. */
export class RunStore {
  constructor(private readonly db: Database) {}

  async list(page: Page): Promise<Rows<RunAnswer>> {
    const rows = await this.db.sql<RunAnswer>(
      `select ${shown} from $schema.run order by started_at desc, id desc limit :limit offset :offset`,
      { ...page }
    )
    return await countedRows(page, rows, () => this.db.sql('select count(*) as total from $schema.run'))
  }

  async last(): Promise<LastRuns> {
    const [row] = await this.db.sql<LastRuns>(
      `select (select max(finished_at) from $schema.run where status = 'succeeded') as last_succeeded_at,
        (select max(started_at) from $schema.run) as last_attempted_at,
        (select error from $schema.run where finished_at is not null order by started_at desc, id desc limit 1) as last_error`
    )
    return row ?? { last_succeeded_at: null, last_attempted_at: null, last_error: null }
  }

  /** Whether the latest run that has ended failed. */
  async hasFailed(): Promise<boolean> {
    const [row] = await this.db.sql<{ status: string }>(
      `select status from $schema.run where finished_at is not null order by started_at desc, id desc limit 1`
    )
    return row?.status === 'failed'
  }

  /** False while another one is not over. */
  async insert(run: { readonly id: string; readonly started_at: Date }, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `insert into $schema.run (id, started_at, status) values (:id, :started_at, 'running') on conflict do nothing returning id`,
      run,
      tx
    )
    return rows.length > 0
  }

  async open(tx?: Tx): Promise<OpenRun | undefined> {
    const [row] = await this.db.sql<OpenRun>(
      `select id, begun_at, file, remote_key, log from $schema.run where status = 'running'`,
      undefined,
      tx
    )
    return row
  }

  /** Whether it waited to be taken up. */
  async take(id: string, at: Date): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.run set begun_at = :at where id = :id and status = 'running' and begun_at is null returning id`,
      { id, at }
    )
    return rows.length > 0
  }

  /** It waits again. What it has left at the remote stays known: that may be away now. */
  async putBack(id: string, log: string): Promise<void> {
    await this.db.sql(
      `update $schema.run set begun_at = null, file = null, is_uploaded = false, log = :log where id = :id and status = 'running'`,
      { id, log }
    )
  }

  async describe(id: string, run: { readonly file: string; readonly encrypted: boolean }): Promise<void> {
    await this.db.sql('update $schema.run set file = :file, encrypted = :encrypted where id = :id', {
      id,
      ...run
    })
  }

  async writeLog(id: string, log: string): Promise<void> {
    await this.db.sql(`update $schema.run set log = :log where id = :id and status = 'running'`, { id, log })
  }

  /** Before the first byte is sent: then it is known what a process that is killed has left there. */
  async beginUpload(id: string, key: string): Promise<void> {
    await this.db.sql(
      `with begun as (insert into $schema.left_upload (key) values (:key) on conflict do nothing)
      update $schema.run set remote_key = :key where id = :id`,
      { id, key }
    )
  }

  async uploaded(id: string): Promise<void> {
    await this.db.sql(
      `with whole as (delete from $schema.left_upload l using $schema.run r where r.id = :id and l.key = r.remote_key)
      update $schema.run set is_uploaded = true where id = :id`,
      { id }
    )
  }

  /** Keys of uploads that may have left parts. */
  async leftUploads(): Promise<string[]> {
    const rows = await this.db.sql<{ key: string }>('select key from $schema.left_upload order by key')
    return rows.map(({ key }) => key)
  }

  /** There are no parts of it. */
  async partsGone(key: string): Promise<void> {
    await this.db.sql('delete from $schema.left_upload where key = :key', { key })
  }

  /** The keys that runs have uploaded to, or tried to. */
  async remoteKeys(): Promise<ReadonlySet<string>> {
    const rows = await this.db.sql<{ key: string }>(
      'select remote_key as key from $schema.run where remote_key is not null'
    )
    return new Set(rows.map(({ key }) => key))
  }

  /** By which its archives are told from those of others, a UUID: made when it is first asked for, as databases are copied. */
  async installation(tx?: Tx): Promise<string> {
    await this.db.sql(
      'insert into $schema.installation (id) values (gen_random_uuid()) on conflict do nothing',
      undefined,
      tx
    )
    const [row] = await this.db.sql<{ id: string }>('select id from $schema.installation', undefined, tx)
    if (row === undefined) throw new Error('the id of the installation could not be kept')
    return row.id
  }

  /** Whether it had not ended before. */
  async end(id: string, ended: EndedRun, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.run set status = :status, finished_at = :finished_at, size_bytes = :size_bytes, error = :error, log = :log
      where id = :id and status = 'running' returning id`,
      { id, ...ended },
      tx
    )
    return rows.length > 0
  }

  /** Rows are kept longer than archives, and not for ever. */
  async forget(beyond: number): Promise<void> {
    await this.db.sql(
      `delete from $schema.run where id in (
        select id from $schema.run where status <> 'running' order by started_at desc, id desc offset :beyond)`,
      { beyond }
    )
  }
}
