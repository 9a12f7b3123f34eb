import { type ApplicationStatus, applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import {
  countedRows,
  type Database,
  type Page,
  type Rows,
  type TableRow,
  type Tx,
  versionOfRows
} from 'busbar/sdk'
import type { DeploymentKind, DeploymentStatus, Trigger } from '../api.js'
import type { HttpCheck } from '../health/http-check.js'
import type { Deployment } from '../schemas.js'
import { activeStatuses } from './deployment-state.js'

/** A row: what goes over the wire, without the log, and what only the engine knows. */
export type DeploymentRow = Omit<Deployment, 'build_logs'> & {
  readonly project_id: string
  /** The deployment whose image or commit is used again. */
  readonly origin_id: string | null
  readonly started_at: Date
  readonly finished_at: Date | null
  /** How many processes have begun to work on it. */
  readonly runs: number
  /** When its build was asked for; null before that, and where nothing is built. */
  readonly queued_at: Date | null
  /** What its log says it waits for. */
  readonly waiting_cause: string | null
  /** Null where the check is of another kind. */
  readonly http_check: HttpCheck | null
  readonly cancel_requested_at: Date | null
}

/** A version that runs and is asked how it is. */
export type WatchedDeployment = Pick<DeploymentRow, 'id' | 'application_id' | 'health_status'> & {
  readonly application_status: ApplicationStatus
  readonly owner_id: string
  readonly http_check: HttpCheck
}

export interface NewDeployment {
  readonly id: string
  readonly projectId: string
  readonly applicationId: string
  readonly kind: DeploymentKind
  readonly originId: string | null
  readonly trigger: Trigger
  readonly idempotencyKey: string | null
  readonly imageTag: string | null
  readonly commit: {
    readonly sha: string | null
    readonly message: string | null
    readonly author: string | null
  }
  readonly startedAt: Date
}

/** Columns that the engine writes while it works. */
export type DeploymentChanges = Partial<
  Pick<
    DeploymentRow,
    | 'image_tag'
    | 'commit_sha'
    | 'commit_message'
    | 'commit_author'
    | 'error_message'
    | 'build_started_at'
    | 'build_ended_at'
    | 'deploy_started_at'
    | 'finished_at'
    | 'health_status'
    | 'health_message'
    | 'health_checked_at'
    | 'step'
    | 'waiting_for'
    | 'remedy'
    | 'evidence'
    | 'container_port'
    | 'http_check'
    | 'switch_served'
    | 'switch_failed'
    | 'switch_longest_gap_ms'
    | 'switch_cut'
    | 'drain_ms'
    | 'old_version_killed'
    | 'build_engine'
  >
>

/** What an answer shows; `build_logs` is read apart. */
const columns = `id, application_id, status, triggered_by, image_tag, commit_sha, commit_message, commit_author, null as build_logs,
  error_message, started_at, build_started_at, build_ended_at, deploy_started_at, finished_at, idempotency_key,
  health_status, health_message, health_checked_at, kind, step, waiting_for, remedy, evidence, container_port,
  switch_served, switch_failed, switch_longest_gap_ms, switch_cut, drain_ms, old_version_killed, build_engine`

/** The application is not being deleted. */
export const isThere = `exists (select from ${applicationTable.name} as owner where owner.id = application_id and owner.deleting_at is null)`

const active = `('${activeStatuses.join("', '")}')`

export class DeploymentStore {
  readonly #db: Database
  readonly #get
  readonly #owner
  readonly #activeOf
  readonly #listVersion

  constructor(db: Database) {
    this.#db = db
    this.#get = db.statement<Deployment, [string, string]>(
      'deployment-get',
      `select ${columns} from $schema.deployment where project_id = $1 and id = $2 and ${isThere}`
    )
    this.#owner = db.statement<{ project_id: string; application_id: string }, [string]>(
      'deployment-owner',
      'select project_id, application_id from $schema.deployment where id = $1'
    )
    this.#activeOf = db.statement<{ id: string }, [string]>(
      'deployment-active',
      `select id from $schema.deployment where application_id = $1 and status in ${active}`
    )
    this.#listVersion = db.statement<{ version: string }, [string, string]>(
      'deployment-list-version',
      // A log only grows at its end, or goes as a whole.
      `select ${versionOfRows('deployment', 'log_end.ctid', 'log_end.xmin')} as version from $schema.deployment as deployment
      left join lateral (select ctid, xmin from $schema.deployment_log where deployment_id = deployment.id order by seq desc limit 1) log_end on true
      where project_id = $1 and application_id = $2 and ${isThere} having count(*) > 0`
    )
  }

  /** Undefined while another one is active: the index allows one, the first. */
  async insert(deployment: NewDeployment, tx: Tx): Promise<Deployment | undefined> {
    const { commit, ...rest } = deployment
    const [row] = await this.#db.sql<Deployment>(
      `
      insert into $schema.deployment (id, project_id, application_id, kind, origin_id, status, triggered_by, idempotency_key, image_tag,
        commit_sha, commit_message, commit_author, started_at)
      values (:id, :projectId, :applicationId, :kind, :originId, 'pending', :trigger, :idempotencyKey, :imageTag,
        :sha, :message, :author, :startedAt)
      on conflict (application_id) where status in ${active} do nothing
      returning ${columns}`,
      { ...rest, ...commit },
      tx
    )
    return row
  }

  async get(projectId: string, id: string): Promise<Deployment | undefined> {
    return (await this.#get([projectId, id]))[0]
  }

  async ownerOf(id: string): Promise<{ project_id: string; application_id: string } | undefined> {
    return (await this.#owner([id]))[0]
  }

  /** Undefined when there is no such application, or it is being deleted. */
  async projectOfApplication(applicationId: string): Promise<string | undefined> {
    const [row] = await this.#db.sql<TableRow<typeof applicationTable, 'project_id'>>(
      `select a.project_id from ${applicationTable.name} a where a.id = ? and a.deleting_at is null`,
      [applicationId]
    )
    return row?.project_id
  }

  async nameOfApplication(applicationId: string, tx: Tx): Promise<string | undefined> {
    const [row] = await this.#db.sql<TableRow<typeof applicationTable, 'name'>>(
      `select a.name from ${applicationTable.name} a where a.id = ?`,
      [applicationId],
      tx
    )
    return row?.name
  }

  /** The user whose project it is in; undefined when it is gone. */
  async ownerOfApplication(applicationId: string): Promise<string | undefined> {
    const [row] = await this.#db.sql<TableRow<typeof projectTable, 'user_id'>>(
      `select p.user_id from ${applicationTable.name} a join ${projectTable.name} p on p.id = a.project_id where a.id = ?`,
      [applicationId]
    )
    return row?.user_id
  }

  /** By project, the user whose it is. */
  async ownersOfProjects(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#db.sql<TableRow<typeof projectTable, 'id' | 'user_id'>>(
      `select p.id, p.user_id from ${projectTable.name} p where cast(p.id as text) = any(:ids)`,
      { ids }
    )
    return new Map(rows.map(({ id, user_id: ownerId }) => [id, ownerId]))
  }

  /** The running versions that have an http check. */
  async watched(): Promise<WatchedDeployment[]> {
    return await this.#db.sql<WatchedDeployment>(`
      select d.id, d.application_id, d.health_status, d.http_check, a.status as application_status, p.user_id as owner_id
      from $schema.deployment d
      join ${applicationTable.name} a on a.container_deployment_id = d.id
      join ${projectTable.name} p on p.id = d.project_id
      where d.http_check is not null and a.status in ('running', 'unhealthy') and a.deleting_at is null order by d.id`)
  }

  /** The deployment of this application that still moves. */
  async activeOf(applicationId: string): Promise<string | undefined> {
    return (await this.#activeOf([applicationId]))[0]?.id
  }

  /** Everything of it, for the engine. */
  async row(id: string): Promise<DeploymentRow | undefined> {
    return (await this.#db.sql<DeploymentRow>('select * from $schema.deployment where id = ?', [id]))[0]
  }

  /** Newest first, with the count of all. */
  async list(projectId: string, applicationId: string, page: Page): Promise<Rows<Deployment>> {
    const rows = await this.#db.sql<Deployment>(
      `
      select ${columns} from $schema.deployment where project_id = :projectId and application_id = :applicationId and ${isThere}
      order by started_at desc, id desc limit :limit offset :offset`,
      { projectId, applicationId, ...page }
    )
    return await countedRows(page, rows, () =>
      this.#db.sql(
        'select count(*) as total from $schema.deployment where project_id = ? and application_id = ?',
        [projectId, applicationId]
      )
    )
  }

  /** Of all that `list` may show of an application; undefined while that is nothing. */
  async listVersion(projectId: string, applicationId: string): Promise<string | undefined> {
    return (await this.#listVersion([projectId, applicationId]))[0]?.version
  }

  /** Moves it from one of `from` to `to`; the state it was in, or undefined when it was in none of them. */
  async move(
    id: string,
    from: readonly DeploymentStatus[],
    to: DeploymentStatus,
    changes: DeploymentChanges,
    tx: Tx
  ): Promise<{ row: DeploymentRow; was: DeploymentStatus } | undefined> {
    const was = from.length === 1 ? from[0] : await this.#lockedStatus(id, tx)
    if (was === undefined || !from.includes(was)) return undefined
    const [row] = await this.#db
      .table<DeploymentRow>('deployment', tx)
      .where({ id, status: was })
      .update({ ...changes, status: to })
      .returning('*')
    return row === undefined ? undefined : { row, was }
  }

  async #lockedStatus(id: string, tx: Tx): Promise<DeploymentStatus | undefined> {
    const [row] = await this.#db.sql<{ status: DeploymentStatus }>(
      'select status from $schema.deployment where id = ? for no key update',
      [id],
      tx
    )
    return row?.status
  }

  async change(id: string, changes: DeploymentChanges, tx?: Tx): Promise<void> {
    await this.#db.table<DeploymentRow>('deployment', tx).where({ id }).update(changes)
  }

  /** Counts a process that begins to work on it; undefined when it does not exist or has ended. */
  async begin(id: string, now: Date): Promise<DeploymentRow | undefined> {
    const [row] = await this.#db.sql<DeploymentRow>(
      `update $schema.deployment set runs = runs + 1, seen_at = ? where id = ? and status in ${active} returning *`,
      [now, id]
    )
    return row
  }

  /** Notes that this process works on it; true when a cancel was asked for. */
  async touch(id: string, now: Date): Promise<boolean> {
    const [row] = await this.#db.sql<{ is_cancelled: boolean }>(
      "update $schema.deployment set seen_at = ? where id = ? returning (cancel_requested_at is not null or status = 'failed') as is_cancelled",
      [now, id]
    )
    return row?.is_cancelled === true
  }

  /** Enters a step; false when a cancel was asked for, or it is over. */
  async enterStep(id: string, step: string, now: Date): Promise<boolean> {
    const rows = await this.#db.sql(
      `update $schema.deployment set step = ?, seen_at = ? where id = ? and cancel_requested_at is null and status in ${active} returning id`,
      [step, now, id]
    )
    return rows.length === 1
  }

  /** False when it has ended, or is past `steps` in which it can be cancelled. */
  async requestCancel(
    projectId: string,
    id: string,
    uncancellable: readonly string[],
    now: Date
  ): Promise<boolean> {
    const rows = await this.#db.sql(
      `
      update $schema.deployment set cancel_requested_at = coalesce(cancel_requested_at, :now)
      where project_id = :projectId and id = :id and status in ${active} and not coalesce(step, '') = any(cast(:uncancellable as text[])) returning id`,
      { projectId, id, uncancellable: [...uncancellable], now }
    )
    return rows.length === 1
  }

  /** Deployments that still move but that no process has worked on since `before`; those that wait in the queue of builds are looked at there. */
  async abandoned(
    before: Date
  ): Promise<ReadonlyArray<Pick<DeploymentRow, 'id' | 'application_id' | 'status'>>> {
    return await this.#db.sql<Pick<DeploymentRow, 'id' | 'application_id' | 'status'>>(
      `select id, application_id, status from $schema.deployment where status in ${active} and coalesce(seen_at, started_at) < ?
         and not (status = 'pending' and queued_at is not null and admitted_at is null)`,
      [before]
    )
  }

  /** By id, for those of `ids` that are known here. */
  async statesOf(ids: readonly string[]): Promise<ReadonlyMap<string, DeploymentStatus>> {
    const rows = await this.#db.sql<{ id: string; status: DeploymentStatus }>(
      'select id, status from $schema.deployment where id = any(cast(? as uuid[]))',
      [[...ids]]
    )
    return new Map(rows.map(({ id, status }) => [id, status]))
  }

  /** The one whose container has taken over from that of `id`; undefined when there is none. */
  async successorOf(id: string): Promise<string | undefined> {
    const [row] = await this.#db.sql<{ id: string }>(
      `
      select later.id from $schema.deployment later join $schema.deployment own on own.application_id = later.application_id
      where own.id = ? and later.status = 'success' and later.kind <> 'build' and later.finished_at > own.finished_at
      order by later.finished_at, later.id limit 1`,
      [id]
    )
    return row?.id
  }

  /** The newest that is about a container: a build is not. */
  async latestOf(applicationId: string): Promise<DeploymentRow | undefined> {
    return (
      await this.#db.sql<DeploymentRow>(
        `select * from $schema.deployment where application_id = ? and kind <> 'build' order by started_at desc, id desc limit 1`,
        [applicationId]
      )
    )[0]
  }

  /** The newest that put a container into service. */
  async lastRolledOut(projectId: string, applicationId: string): Promise<DeploymentRow | undefined> {
    return (
      await this.#db.sql<DeploymentRow>(
        `
      select * from $schema.deployment where project_id = ? and application_id = ? and status = 'success' and kind <> 'build' and image_tag is not null
      order by started_at desc, id desc limit 1`,
        [projectId, applicationId]
      )
    )[0]
  }

  async lastWithCommit(projectId: string, applicationId: string): Promise<DeploymentRow | undefined> {
    return (
      await this.#db.sql<DeploymentRow>(
        `
      select * from $schema.deployment where project_id = ? and application_id = ? and status = 'success' and commit_sha is not null
      order by started_at desc, id desc limit 1`,
        [projectId, applicationId]
      )
    )[0]
  }

  /**
   * The image tags that rollbacks may still `need`; with that of the latest deployment, whose layers are the next build's
   * cache, all `tags` that stay while there is room; and the deployments that still move and may be building one.
   */
  async keptImages(
    applicationId: string,
    servingId: string | null,
    keep: number
  ): Promise<{ tags: ReadonlySet<string>; needed: readonly string[]; active: readonly string[] }> {
    const rows = await this.#db.sql<{
      id: string
      image_tag: string | null
      is_active: boolean
      is_needed: boolean
    }>(
      `
      select id, image_tag, status in ${active} as is_active,
        id = :servingId or status in ${active} or status = 'success' as is_needed from $schema.deployment
      where application_id = :applicationId and (id = :servingId or status in ${active}
        or id = (select id from $schema.deployment where application_id = :applicationId order by started_at desc, id desc limit 1)
        or id in (select id from $schema.deployment where application_id = :applicationId and status = 'success' and image_tag is not null
          order by started_at desc, id desc limit :keep))`,
      { applicationId, servingId, keep }
    )
    return {
      tags: new Set(rows.flatMap(row => row.image_tag ?? [])),
      needed: rows.flatMap(row => (row.is_needed ? (row.image_tag ?? []) : [])),
      active: rows.filter(row => row.is_active).map(row => row.id)
    }
  }

  /** The image tags of the latest deployments that failed, of applications that none is under way of: see `keptImages`. */
  async failedImages(): Promise<readonly string[]> {
    const rows = await this.#db.sql<{ image_tag: string }>(`
      with latest as (
        select distinct on (application_id) * from $schema.deployment order by application_id, started_at desc, id desc)
      select l.image_tag from latest l where l.status = 'failed' and l.image_tag not like '%@%' and not exists (
        select from $schema.deployment d
        where d.application_id = l.application_id and d.image_tag = l.image_tag and d.status <> 'failed')`)
    return rows.map(row => row.image_tag)
  }

  /** Records past the newest `keep`, except the serving one and the newest successful ones. */
  async removeOld(
    applicationId: string,
    servingId: string | null,
    limits: { keep: number; successful: number }
  ): Promise<void> {
    await this.#db.sql(
      `
      delete from $schema.deployment where application_id = :applicationId and status in ('success', 'failed') and id is distinct from :servingId
        and id not in (select id from $schema.deployment where application_id = :applicationId order by started_at desc, id desc limit :keep)
        and id not in (select id from $schema.deployment where application_id = :applicationId and status = 'success'
          order by started_at desc, id desc limit :successful)`,
      { applicationId, servingId, ...limits }
    )
  }

  async removeAll(applicationId: string): Promise<void> {
    await this.#db.sql('delete from $schema.follow_up where application_id = ?', [applicationId])
    await this.#db.sql('delete from $schema.deploy_hook where application_id = ?', [applicationId])
    await this.#db.sql('delete from $schema.deployment where application_id = ?', [applicationId])
  }
}
