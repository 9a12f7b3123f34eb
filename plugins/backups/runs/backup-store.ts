import { countedRows, type Database, type Page, pageOf, type Rows, type Tx } from 'busbar/sdk'
import type { SourceKind } from '../api.js'

type RunStatus = 'running' | 'succeeded' | 'failed'

/** A backup, as who works with it needs it. */
export interface BackupRow {
  readonly id: string
  readonly source_id: string
  readonly config_id: string | null
  readonly destination_id: string | null
  /** Of that destination; null without one. */
  readonly provider: string | null
  readonly in_platform_store: boolean
  /** In which bucket of the platform; null where that is not known, and elsewhere. */
  readonly platform_place: string | null
  readonly status: RunStatus
  readonly started_at: Date
  readonly begun_at: Date | null
  readonly finished_at: Date | null
  readonly key: string | null
  readonly has_file: boolean
  readonly version: string
  readonly format: string | null
  readonly databases: readonly string[]
  readonly quiesce: boolean
  readonly raw_bytes: number
  readonly size_bytes: number
  readonly sha256: string | null
  readonly key_id: string | null
  readonly rows: number | null
  readonly error: string | null
  readonly log: string
  readonly proof: 'unproven' | 'running' | 'proven' | 'failed'
  readonly proof_at: Date | null
  readonly proof_ms: number | null
  readonly proof_rows: number | null
  readonly proof_detail: string | null
  readonly proof_error: string | null
}

/** With what it is a backup of. */
export interface BackupOfSource extends BackupRow {
  readonly kind: SourceKind
  readonly resource_id: string
  readonly resource_name: string
  readonly application_id: string | null
  readonly application_name: string | null
  readonly mount_path: string | null
  readonly engine: string
  readonly slug: string
  readonly deleted_at: Date | null
}

export interface NewBackup {
  readonly id: string
  readonly source_id: string
  readonly config_id: string | null
  readonly destination_id: string | null
  readonly started_at: Date
  readonly version: string
  readonly databases: readonly string[]
  readonly quiesce: boolean
}

interface EndedBadly {
  readonly at: Date
  readonly error: string
  readonly log: string
}

interface StoredFacts {
  readonly format: string
  readonly raw_bytes: number
  readonly size_bytes: number
  readonly sha256: string
  readonly rows: number | null
}

const columns = [
  'id, source_id, config_id, destination_id, in_platform_store, platform_place, status, started_at, begun_at, finished_at, key, has_file, version, format, databases',
  'quiesce, sha256, key_id, error, log, proof, proof_at, proof_ms, proof_detail, proof_error'
].join(', ')
const own = `${columns
  .split(', ')
  .map(column => `b.${column}`)
  .join(', ')}, b.raw_bytes::float8 as raw_bytes, b.size_bytes::float8 as size_bytes, b.rows::float8 as rows,
  b.proof_rows::float8 as proof_rows, (select d.provider from $schema.destination d where d.id = b.destination_id) as provider`
const ofSource = `${own}, s.kind, s.resource_id, s.name as resource_name, s.application_id, s.application_name, s.mount_path, s.engine, s.slug, s.deleted_at`
const joined = '$schema.backup b join $schema.source s on s.id = b.source_id'

/** All SQL on backups. */
export class BackupStore {
  constructor(private readonly db: Database) {}

  async list(sourceId: string, page: Page): Promise<Rows<BackupRow>> {
    const rows = await this.db.sql<BackupRow>(
      `select ${own} from $schema.backup b where b.source_id = :sourceId and b.deleting_at is null
      order by b.started_at desc, b.id desc limit :limit offset :offset`,
      { sourceId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(
        'select count(*) as total from $schema.backup where source_id = :sourceId and deleting_at is null',
        { sourceId }
      )
    )
  }

  /** The newest of the project, and at least the newest of each database and volume that it has. */
  async recent(project: string, newest: number, page: Page): Promise<Rows<BackupOfSource>> {
    const rows = await this.db.sql<BackupOfSource>(
      `with ranked as (
        select b.id, row_number() over (order by b.started_at desc, b.id desc) as place,
          row_number() over (partition by b.source_id order by b.started_at desc, b.id desc) as own_place
        from ${joined} where s.project_id = :project and s.deleted_at is null and b.deleting_at is null
      )
      select ${ofSource} from ${joined} where b.id in (select id from ranked where place <= :newest or own_place = 1)
      order by b.started_at desc, b.id desc`,
      { project, newest }
    )
    return pageOf(page, rows)
  }

  /** Of what is gone: with `application`, of what was in that. */
  async orphaned(
    of: { readonly project: string; readonly kind: SourceKind; readonly application: string | null },
    page: Page
  ): Promise<Rows<BackupOfSource>> {
    const where =
      "s.project_id = :project and s.deleted_at is not null and s.kind = :kind and s.application_id is not distinct from coalesce(cast(:application as uuid), s.application_id) and b.deleting_at is null and b.status <> 'running'"
    const rows = await this.db.sql<BackupOfSource>(
      `select ${ofSource} from ${joined} where ${where} order by b.started_at desc, b.id desc limit :limit offset :offset`,
      { ...of, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from ${joined} where ${where}`, { ...of })
    )
  }

  /** Of any source of the project, unless it is being deleted. */
  async find(project: string, id: string, tx?: Tx): Promise<BackupOfSource | undefined> {
    const [row] = await this.db.sql<BackupOfSource>(
      `select ${ofSource} from ${joined} where b.id = :id and s.project_id = :project and b.deleting_at is null`,
      { project, id },
      tx
    )
    return row
  }

  /**
   * Those of sources that are gone become another's. What is under way of them stays where it is: who works at it puts back what it has
   * changed of what it has begun with.
   */
  async adopt(sourceId: string, former: readonly string[], tx: Tx): Promise<void> {
    // Locked first, in the order of others.
    const found = await this.db.sql<{ id: string }>(
      'select id from $schema.backup where source_id = any(cast(:former as uuid[])) order by id for update',
      { former: [...former] },
      tx
    )
    await this.db.sql(
      `update $schema.backup set source_id = :sourceId where id = any(cast(:ids as uuid[])) and deleting_at is null
        and status <> 'running' and proof <> 'running'`,
      { sourceId, ids: found.map(({ id }) => id) },
      tx
    )
  }

  /** Whether it is there, and stays so until `tx` ends. */
  async lock(id: string, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.backup where id = :id and deleting_at is null for update',
      { id },
      tx
    )
    return rows.length > 0
  }

  /** Also one that is being deleted. */
  async open(id: string): Promise<BackupRow | undefined> {
    const [row] = await this.db.sql<BackupRow>(`select ${own} from $schema.backup b where b.id = :id`, { id })
    return row
  }

  /** Whether the installation has any that is good. */
  async hasAny(): Promise<boolean> {
    const rows = await this.db.sql("select from $schema.backup where status = 'succeeded' limit 1")
    return rows.length > 0
  }

  /** Of how many that are there the latest backup that has ended failed. */
  async failing(kind: SourceKind): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      `select count(*)::int as total from $schema.source s cross join lateral (
        select b.status from $schema.backup b where b.source_id = s.id and b.status <> 'running' and b.deleting_at is null
        order by b.started_at desc, b.id desc limit 1
      ) latest where s.kind = :kind and s.deleted_at is null and latest.status = 'failed'`,
      { kind }
    )
    return row?.total ?? 0
  }

  async running(sourceId: string, tx?: Tx): Promise<boolean> {
    return (await this.runningOf(sourceId, tx)) !== undefined
  }

  /** The one that is under way. With `tx` it does not end before that: whoever ends it sees what was written in there. */
  async runningOf(sourceId: string, tx?: Tx): Promise<Pick<BackupRow, 'config_id'> | undefined> {
    const [row] = await this.db.sql<Pick<BackupRow, 'config_id'>>(
      `select config_id from $schema.backup where source_id = :sourceId and status = 'running'${tx === undefined ? '' : ' for share'}`,
      { sourceId },
      tx
    )
    return row
  }

  async insert(backup: NewBackup, tx: Tx): Promise<void> {
    await this.#insert({ ...backup, status: 'running', finished_at: null, error: null, log: '' }, tx)
  }

  /** One that was never begun; another one may be under way. */
  async insertFailed(backup: NewBackup, ended: EndedBadly, tx: Tx): Promise<void> {
    const { at, ...told } = ended
    await this.#insert({ ...backup, ...told, status: 'failed', finished_at: at }, tx)
  }

  async #insert(
    backup: NewBackup & Pick<BackupRow, 'status' | 'finished_at' | 'error' | 'log'>,
    tx: Tx
  ): Promise<void> {
    await this.db.sql(
      `insert into $schema.backup (id, source_id, config_id, destination_id, status, started_at, finished_at, version, databases, quiesce, error, log)
      values (:id, :source_id, :config_id, :destination_id, :status, :started_at, :finished_at, :version, cast(:databases as text[]), :quiesce, :error, :log)`,
      { ...backup, databases: [...backup.databases] },
      tx
    )
  }

  /** Whether it waited to be taken up. */
  async take(id: string, at: Date): Promise<boolean> {
    const rows = await this.db.sql(
      "update $schema.backup set begun_at = :at, seen_at = :at where id = :id and status = 'running' and begun_at is null returning id",
      { id, at }
    )
    return rows.length > 0
  }

  /** It waits again. */
  async putBack(id: string, log: string): Promise<void> {
    await this.db.sql(
      "update $schema.backup set begun_at = null, log = :log where id = :id and status = 'running'",
      { id, log }
    )
  }

  /**
   * Before the first byte: then it is known what a process that is killed has left. False where another backup has that key,
   * wherever it is: two destinations may be one place.
   */
  async claim(
    id: string,
    file: {
      readonly key: string
      readonly format: string
      readonly keyId: string
      readonly inPlatformStore: boolean
      readonly platformPlace: string | null
    }
  ): Promise<boolean> {
    return await this.db.transaction(async tx => {
      await this.db.sql(
        "select pg_advisory_xact_lock(hashtextextended('backups.key/' || :key, 0))",
        { key: file.key },
        tx
      )
      const rows = await this.db.sql(
        `update $schema.backup set key = :key, format = :format, key_id = :keyId, in_platform_store = :inPlatformStore,
          platform_place = :platformPlace, has_file = true
        where id = :id and not exists (select from $schema.backup o where o.key = :key and o.has_file and o.id <> :id) returning id`,
        { id, ...file },
        tx
      )
      return rows.length > 0
    })
  }

  async writeLog(id: string, log: string, at: Date): Promise<void> {
    await this.db.sql(
      "update $schema.backup set log = :log, seen_at = :at where id = :id and status = 'running'",
      { id, log, at }
    )
  }

  /** Whether somebody still wants it: false where what it is of was removed meanwhile. */
  async isWanted(id: string, tx?: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      'select from $schema.backup where id = :id and deleting_at is null',
      { id },
      tx
    )
    return rows.length > 0
  }

  /** False where it has ended otherwise, or is not known any more. */
  async succeed(
    id: string,
    { at, log, ...facts }: StoredFacts & { readonly at: Date; readonly log: string },
    tx: Tx
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.backup set status = 'succeeded', finished_at = :at, log = :log, format = :format, raw_bytes = :raw_bytes,
        size_bytes = :size_bytes, sha256 = :sha256, rows = :rows where id = :id and status = 'running' returning id`,
      { id, at, log, ...facts },
      tx
    )
    return rows.length > 0
  }

  /** Whether it had not ended before. */
  async fail(id: string, ended: EndedBadly, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.backup set status = 'failed', finished_at = :at, error = :error, log = :log
      where id = :id and status = 'running' returning id`,
      { id, ...ended },
      tx
    )
    return rows.length > 0
  }

  async fileGone(id: string): Promise<void> {
    await this.db.sql('update $schema.backup set has_file = false where id = :id', { id })
  }
}
