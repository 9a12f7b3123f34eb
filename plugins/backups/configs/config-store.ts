import { countedRows, type Database, type Page, type Rows, type Tx } from 'busbar/sdk'
import type { SourceKind } from '../api.js'

export interface ConfigRow {
  readonly id: string
  readonly source_id: string
  readonly destination_id: string
  readonly schedule: string
  readonly time_zone: string
  /** '': never. */
  readonly drill_schedule: string
  readonly prefix: string
  readonly keep_latest: number | null
  readonly enabled: boolean
  readonly quiesce: boolean
  readonly databases: readonly string[]
  readonly last_run_at: Date | null
  readonly created_at: Date
  readonly updated_at: Date
}

/** With what it is a schedule for. */
export interface ConfigOfSource extends ConfigRow {
  readonly project_id: string
  readonly kind: SourceKind
  readonly resource_id: string
  readonly resource_name: string
  readonly mount_path: string | null
  /** When it was due, where other work has kept it from beginning since. */
  readonly waits_since: Date | null
  /** In a sentence. */
  readonly waits_for: string | null
}

const columns = [
  'id, source_id, destination_id, schedule, time_zone, drill_schedule, prefix, keep_latest, enabled, quiesce, databases',
  'last_run_at, created_at, updated_at'
].join(', ')
const ofSource = `${columns
  .split(', ')
  .map(column => `c.${column}`)
  .join(', ')}, s.project_id, s.kind, s.resource_id, s.name as resource_name, s.mount_path,
  c.waits_since, c.waits_for`
const joined = '$schema.config c join $schema.source s on s.id = c.source_id'

/** All SQL on schedules. */
export class ConfigStore {
  constructor(private readonly db: Database) {}

  async ofResource(kind: SourceKind, resourceId: string, page: Page): Promise<Rows<ConfigOfSource>> {
    const where = 's.kind = :kind and s.resource_id = :resourceId'
    return await this.#list(where, { kind, resourceId }, page)
  }

  /** Of all volumes of an application. */
  async ofApplication(applicationId: string, page: Page): Promise<Rows<ConfigOfSource>> {
    return await this.#list(
      "s.kind = 'volume' and s.application_id = :applicationId",
      { applicationId },
      page
    )
  }

  /** With `tx` it stays as it is until that ends. */
  async find(id: string, tx?: Tx): Promise<ConfigOfSource | undefined> {
    const [row] = await this.db.sql<ConfigOfSource>(
      `select ${ofSource} from ${joined} where c.id = :id${tx === undefined ? '' : ' for update of c'}`,
      { id },
      tx
    )
    return row
  }

  async count(sourceId: string, tx: Tx): Promise<number> {
    const [row] = await this.db.sql<{ total: number }>(
      'select count(*)::int as total from $schema.config where source_id = :sourceId',
      { sourceId },
      tx
    )
    return row?.total ?? 0
  }

  async insert(row: ConfigRow, tx: Tx): Promise<void> {
    await this.db.sql(
      `insert into $schema.config (${columns})
      values (:id, :source_id, :destination_id, :schedule, :time_zone, :drill_schedule, :prefix, :keep_latest, :enabled, :quiesce,
        cast(:databases as text[]), :last_run_at, :created_at, :updated_at)`,
      { ...row, databases: [...row.databases] },
      tx
    )
  }

  async update(row: ConfigRow, tx: Tx): Promise<void> {
    await this.db.sql(
      `update $schema.config set destination_id = :destination_id, schedule = :schedule, time_zone = :time_zone,
        drill_schedule = :drill_schedule, prefix = :prefix, keep_latest = :keep_latest, enabled = :enabled, quiesce = :quiesce,
        databases = cast(:databases as text[]), updated_at = :updated_at,
        waits_since = case when :enabled then waits_since end
      where id = :id`,
      {
        id: row.id,
        destination_id: row.destination_id,
        schedule: row.schedule,
        time_zone: row.time_zone,
        drill_schedule: row.drill_schedule,
        prefix: row.prefix,
        keep_latest: row.keep_latest,
        enabled: row.enabled,
        quiesce: row.quiesce,
        databases: [...row.databases],
        updated_at: row.updated_at
      },
      tx
    )
  }

  /** What keys of its backups begin with, behind the prefix of the destination. */
  async prefixOf(id: string): Promise<string> {
    return (await this.find(id))?.prefix ?? ''
  }

  /** How many backups it keeps; null: all. Undefined where it is gone. */
  async keepOf(id: string): Promise<number | null | undefined> {
    return (await this.find(id))?.keep_latest
  }

  /** What waited is made with it. */
  async ran(id: string, at: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.config set last_run_at = :at, waits_since = null, waits_for = null where id = :id',
      { id, at },
      tx
    )
  }

  async wait(
    id: string,
    { since, what }: { readonly since: Date; readonly what: string },
    tx: Tx
  ): Promise<void> {
    await this.db.sql(
      'update $schema.config set waits_since = :since, waits_for = :what where id = :id',
      { id, since, what },
      tx
    )
  }

  /** Those that wait, of one source or of all: who waits longest first. */
  async waiting(
    sourceId: string | null,
    tx?: Tx
  ): Promise<Array<{ readonly id: string; readonly source_id: string }>> {
    return await this.db.sql(
      `select id, source_id from $schema.config
      where waits_since is not null and (cast(:sourceId as uuid) is null or source_id = :sourceId) order by waits_since, id`,
      { sourceId },
      tx
    )
  }

  async remove(id: string, tx: Tx): Promise<void> {
    await this.db.sql('delete from $schema.config where id = :id', { id }, tx)
  }

  /** Ids. */
  async ofSource(sourceId: string, tx: Tx): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      'select id from $schema.config where source_id = :sourceId',
      { sourceId },
      tx
    )
    return rows.map(({ id }) => id)
  }

  async ofProject(projectId: string): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      `select c.id from ${joined} where s.project_id = :projectId`,
      { projectId }
    )
    return rows.map(({ id }) => id)
  }

  async #list(where: string, filter: Record<string, unknown>, page: Page): Promise<Rows<ConfigOfSource>> {
    const rows = await this.db.sql<ConfigOfSource>(
      `select ${ofSource} from ${joined} where ${where} order by c.created_at, c.id limit :limit offset :offset`,
      { ...filter, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(`select count(*) as total from ${joined} where ${where}`, filter)
    )
  }
}
