import type { ProjectScope } from 'busbar/api/platform'
import { projectTable } from 'busbar/api/projects'
import { countedRows, type Database, type Page, type ProjectId, type Rows, type Tx } from 'busbar/sdk'
import type { DatabaseStatus } from '../api.js'
import { type DatabaseRow, type DatabaseTask, databaseColumns } from './database-row.js'

/** What a write may set. */
export type DatabaseChanges = Partial<Omit<DatabaseRow, 'id' | 'project_id' | 'slug' | 'created_at'>>

/** What is begun, from which states, and what is shown meanwhile. */
export interface TaskBegin {
  readonly task: DatabaseTask
  readonly status: DatabaseStatus
  readonly from: readonly DatabaseStatus[]
  readonly detail?: string
}

interface FollowedRow {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly status: DatabaseStatus
  readonly container_id: string
  readonly stop_asked_at: Date | null
}

const alive = 'deleting_at is null'

/** All SQL on databases. */
export class DatabaseStore {
  readonly #get
  readonly #find

  constructor(private readonly db: Database) {
    this.#get = db.statement<DatabaseRow, [string, string]>(
      'database-get',
      `select ${databaseColumns} from $schema.database where project_id = $1 and id = $2 and ${alive}`
    )
    this.#find = db.statement<DatabaseRow, [string]>(
      'database-find',
      `select ${databaseColumns} from $schema.database where id = $1 and ${alive}`
    )
  }

  async get(projectId: ProjectId, id: string, tx?: Tx): Promise<DatabaseRow | undefined> {
    return (await this.#get([projectId, id], tx))[0]
  }

  /** Whichever project it is in: for work of the platform's own. */
  async find(id: string, tx?: Tx): Promise<DatabaseRow | undefined> {
    return (await this.#find([id], tx))[0]
  }

  /** Newest first. */
  async list(projectId: ProjectId, page: Page): Promise<Rows<DatabaseRow>> {
    const filter = { projectId }
    const rows = await this.db.sql<DatabaseRow>(
      `select ${databaseColumns} from $schema.database where project_id = :projectId and ${alive}
      order by created_at desc, id desc limit :limit offset :offset`,
      { ...filter, ...page }
    )
    return await countedRows(page, rows, () =>
      this.db.sql(
        `select count(*) as total from $schema.database where project_id = :projectId and ${alive}`,
        filter
      )
    )
  }

  async projectSlug(id: string): Promise<string | undefined> {
    const [row] = await this.db.sql<{ slug: string }>(
      `select p.slug from $schema.database d join ${projectTable.name} p on p.id = d.project_id where d.id = ?`,
      [id]
    )
    return row?.slug
  }

  /** The user whose project it is in. */
  async ownerOf(id: string, tx?: Tx): Promise<string | undefined> {
    const [row] = await this.db.sql<{ user_id: string }>(
      `select p.user_id from $schema.database d join ${projectTable.name} p on p.id = d.project_id where d.id = ?`,
      [id],
      tx
    )
    return row?.user_id
  }

  async insert(row: DatabaseRow, tx: Tx): Promise<void> {
    await this.db.table<DatabaseRow>('database', tx).insert(row)
  }

  async update(id: string, changes: DatabaseChanges, tx?: Tx): Promise<void> {
    await this.db.table('database', tx).where({ id }).update(changes)
  }

  /** Undefined where it is not at this attempt at this restore any more. */
  async updateRestored(
    {
      id,
      restore_id: restoreId = null,
      next_volume: nextVolume = null
    }: Pick<DatabaseRow, 'id' | 'restore_id' | 'next_volume'>,
    changes: DatabaseChanges,
    tx?: Tx
  ): Promise<DatabaseRow | undefined> {
    const rows = await this.db
      .table<DatabaseRow>('database', tx)
      .where({ id, task: 'restore' })
      .whereNull('deleting_at')
      .whereRaw('restore_id is not distinct from ? and next_volume is not distinct from ?', [
        restoreId,
        nextVolume
      ])
      .update({ id, ...changes } as object)
      .returning('*')
    return (rows as DatabaseRow[])[0]
  }

  /** Begins work on it, unless something else is at work or it is in none of these states; the row then. */
  async begin(
    id: string,
    { task, status, from, detail }: TaskBegin,
    changes: DatabaseChanges,
    tx: Tx
  ): Promise<DatabaseRow | undefined> {
    const rows = await this.db
      .table<DatabaseRow>('database', tx)
      .where({ id })
      .whereNull('task')
      .whereNull('deleting_at')
      .whereIn('status', [...from])
      .update({
        ...changes,
        task,
        status_before: this.db.table('database', tx).where({ id }).select('status'),
        status,
        status_detail: detail ?? null
      } as object)
      .returning('*')
    return (rows as DatabaseRow[])[0]
  }

  /** Ends work on it, where it is that work; whether it was. */
  async end(id: string, task: DatabaseTask, changes: DatabaseChanges, tx?: Tx): Promise<boolean> {
    const rows = await this.db
      .table('database', tx)
      .where({ id, task })
      .update({ task: null, status_before: null, status_detail: null, ...changes })
      .returning('id')
    return rows.length > 0
  }

  async say(id: string, task: DatabaseTask, detail: string): Promise<void> {
    await this.db.sql('update $schema.database set status_detail = ? where id = ? and task = ?', [
      detail,
      id,
      task
    ])
  }

  /** Of those that are there. */
  async statusesOf(ids: readonly string[]): Promise<ReadonlyMap<string, DatabaseStatus>> {
    const rows = await this.db.sql<{ id: string; status: DatabaseStatus }>(
      `select id, status from $schema.database where id = any(cast(? as uuid[])) and ${alive}`,
      [[...ids]]
    )
    return new Map(rows.map(({ id, status }) => [id, status]))
  }

  async followed(id: string): Promise<FollowedRow | undefined> {
    const [row] = await this.db.sql<FollowedRow>(
      `select id, project_id, name, status, container_id, stop_asked_at from $schema.database
      where id = ? and task is null and container_id is not null and ${alive}`,
      [id]
    )
    return row
  }

  async allFollowed(): Promise<readonly FollowedRow[]> {
    return await this.db.sql<FollowedRow>(
      `select id, project_id, name, status, container_id, stop_asked_at from $schema.database
      where task is null and container_id is not null and ${alive} order by id`
    )
  }

  /**
   * Another status, where the row is still what it was decided from. Once a server has been seen to run, its volume may hold what
   * somebody has written, whether it has ever answered the platform or not.
   */
  async follow(
    { id, container_id: containerId, status: was }: FollowedRow,
    status: DatabaseStatus,
    detail: string | null,
    now: Date
  ): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.database set status = :status, status_detail = :detail,
        initialized_at = case when :status = 'running' then coalesce(initialized_at, cast(:now as timestamptz)) else initialized_at end
      where id = :id and status = :was and container_id = :containerId and task is null and ${alive} returning id`,
      { id, containerId, was, status, detail, now }
    )
    return rows.length > 0
  }

  /** Whether a failure is to be told: at most once in a while. */
  async noteFailure(id: string, now: Date, toldBefore: Date, tx: Tx): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.database set failure_told_at = :now
      where id = :id and coalesce(failure_told_at <= :toldBefore, true) returning id`,
      { id, now, toldBefore },
      tx
    )
    return rows.length > 0
  }

  async external(): Promise<
    ReadonlyArray<Pick<DatabaseRow, 'id' | 'container_id' | 'container_port' | 'external_port'>>
  > {
    return await this.db.sql(
      `select id, container_id, container_port, external_port from $schema.database where is_external and ${alive} order by id`
    )
  }

  /** Numbers that no other database can have, those of what is being deleted included. */
  async heldPorts(): Promise<readonly number[]> {
    const rows = await this.db.sql<{ external_port: number }>(
      'select external_port from $schema.database where external_port is not null'
    )
    return rows.map(row => row.external_port)
  }

  /** False where it has one by now, or is not to have any. */
  async takePort(id: string, port: number): Promise<boolean> {
    const rows = await this.db.sql(
      `update $schema.database set external_port = ?
      where id = ? and is_external and external_port is null and ${alive} returning id`,
      [port, id]
    )
    return rows.length > 0
  }

  /** False where it has another by now. */
  async releasePort(id: string, port: number | null): Promise<boolean> {
    const rows = await this.db.sql(
      'update $schema.database set external_port = null where id = ? and external_port = ? returning id',
      [id, port]
    )
    return rows.length > 0
  }

  /** Those that a job is to work at. */
  async unfinished(): Promise<
    ReadonlyArray<{ readonly id: string; readonly task: 'provision' | 'upgrade' }>
  > {
    return await this.db.sql(
      `select id, task from $schema.database where task in ('provision', 'upgrade') and ${alive} order by id`
    )
  }

  /** Those that are backed up or restored, as far as they know. */
  async left(): Promise<
    ReadonlyArray<{
      readonly id: string
      readonly task: 'backup' | 'restore'
      readonly restore_id: string | null
    }>
  > {
    return await this.db.sql(
      `select id, task, restore_id from $schema.database where task in ('backup', 'restore') and ${alive} order by id`
    )
  }

  async hasSlug(slug: string, tx: Tx): Promise<boolean> {
    return (await this.db.sql('select 1 from $schema.database where slug = ?', [slug], tx)).length > 0
  }

  /** Volumes that upgrades keep. */
  async keptVolumes(id: string): Promise<readonly string[]> {
    const rows = await this.db.sql<{ volume: string }>(
      'select coalesce(kept_volume, former_volume) as volume from $schema.upgrade where database_id = ? and kept_until is not null',
      [id]
    )
    return rows.map(row => row.volume)
  }

  async counts(
    scope: ProjectScope
  ): Promise<ReadonlyArray<{ readonly status: DatabaseStatus; readonly count: number }>> {
    return await this.db.sql(
      `select status, count(*) as count from $schema.database
      where ${alive} and (cast(:scope as uuid[]) is null or project_id = any(cast(:scope as uuid[])))
      group by status`,
      { scope }
    )
  }
}
