import { projectTable } from 'busbar/api/projects'
import type { Database, Tx } from 'busbar/sdk'
import type { ApplicationStatus, DeployRecord } from './api.js'
import type { HealthCheckColumns } from './health-check.js'
import type { ApplicationRow } from './schemas.js'

export type DeployableRow = HealthCheckColumns &
  Pick<
    ApplicationRow,
    | 'id'
    | 'project_id'
    | 'name'
    | 'slug'
    | 'status'
    | 'type'
    | 'build_type'
    | 'build_type_override'
    | 'builder_image'
    | 'custom_buildpacks'
    | 'source_repo'
    | 'source_image'
    | 'registry_username'
    | 'branch'
    | 'dockerfile_path'
    | 'root_directory'
    | 'build_target'
    | 'build_platform'
    | 'git_integration_id'
    | 'container_port'
    | 'start_command'
    | 'cpu_limit'
    | 'memory_limit'
    | 'container_caps'
    | 'readonly_rootfs'
  > & {
    readonly project_slug: string
    readonly git_token: string | null
    readonly registry_password: string | null
    readonly container_deployment_id: string | null
  }

/** A row whose status follows a container. */
interface FollowedRow {
  readonly id: string
  readonly status: ApplicationStatus
  readonly container_deployment_id: string
}

/** A status seen on the engine; `was` and `container_deployment_id` are what it was decided from. */
export interface StatusChange extends FollowedRow {
  readonly was: ApplicationStatus
}

/** When a failure is told of. */
interface TellingTimes {
  readonly now: Date
  /** What was last told before this may be told again. */
  readonly toldBefore: Date
  /** What ends after a stop was asked for, since this, was to end. */
  readonly askedSince: Date
}

/** A row that has changed; `is_failure`: its users are to be told. */
interface FollowedChange {
  readonly id: string
  readonly project_id: string
  readonly name: string
  readonly status: ApplicationStatus
  readonly is_failure: boolean
}

/** What deploys read and write of an application, and what follows from its container. */
export class DeployStore {
  readonly #deployable
  readonly #followed

  constructor(private readonly db: Database) {
    this.#deployable = db.statement<DeployableRow, [string]>(
      'application-deployable',
      `
      select a.*, p.slug as project_slug from $schema.application a join ${projectTable.name} p on p.id = a.project_id
      where a.id = $1 and a.deleting_at is null and p.deleting_at is null`
    )
    this.#followed = db.statement<FollowedRow, [string]>(
      'application-followed',
      `
      select id, status, container_deployment_id from $schema.application
      where id = $1 and container_deployment_id is not null and deleting_at is null`
    )
  }

  async deployable(id: string): Promise<DeployableRow | undefined> {
    return (await this.#deployable([id]))[0]
  }

  async followed(id: string): Promise<FollowedRow | undefined> {
    return (await this.#followed([id]))[0]
  }

  async allFollowed(): Promise<FollowedRow[]> {
    return await this.db.sql<FollowedRow>(`
      select id, status, container_deployment_id from $schema.application
      where container_deployment_id is not null and deleting_at is null order by id`)
  }

  /** Of those that are there. */
  async statusesOf(ids: readonly string[]): Promise<ReadonlyMap<string, ApplicationStatus>> {
    const rows = await this.db.sql<{ id: string; status: ApplicationStatus }>(
      'select id, status from $schema.application where id = any(cast(? as uuid[])) and deleting_at is null',
      [[...ids]]
    )
    return new Map(rows.map(({ id, status }) => [id, status]))
  }

  /** The project and the status before; undefined when the application is gone. */
  async recordDeployed(
    id: string,
    deploy: DeployRecord,
    tx: Tx
  ): Promise<{ project_id: string; was: ApplicationStatus } | undefined> {
    const [row] = await this.db.sql<{ project_id: string; was: ApplicationStatus }>(
      `
      update $schema.application a set status = 'running', container_deployment_id = :deploymentId,
        last_deployed_at = :finishedAt, last_activity_at = :finishedAt,
        crash_told_at = null, unhealthy_told_at = null, stop_asked_at = null,
        config_changed_at = case when a.config_changed_at < :startedAt then null else a.config_changed_at end,
        source_changed_at = case when :rebuilt and a.source_changed_at < :startedAt then null else a.source_changed_at end
      from (select id, status from $schema.application where id = :id for no key update) before
      where a.id = before.id returning a.project_id, before.status as was`,
      { id, ...deploy },
      tx
    )
    return row
  }

  /** True when it was another one before. */
  async setStatus(id: string, status: ApplicationStatus): Promise<boolean> {
    const rows = await this.db.sql(
      'update $schema.application set status = :status where id = :id and status <> :status and deleting_at is null returning id',
      { id, status }
    )
    return rows.length > 0
  }

  /** Writes those changes whose ground still holds, in one statement, and which of them are failures to be told of; the rows that changed. */
  async setStatuses(
    changes: readonly StatusChange[],
    times: TellingTimes,
    tx: Tx
  ): Promise<readonly FollowedChange[]> {
    return await this.db.sql<FollowedChange>(
      `
      with seen as (
        select * from unnest(cast(:ids as uuid[]), cast(:deployments as uuid[]), cast(:was as text[]), cast(:statuses as text[]))
          as seen (id, deployment, was, status)),
      held as (
        select a.id, seen.status, case
          when seen.status not in ('error', 'unhealthy') then false
          when a.stop_asked_at > :askedSince then false
          else coalesce(case seen.status when 'error' then a.crash_told_at else a.unhealthy_told_at end <= :toldBefore, true)
        end as is_failure
        from $schema.application a join seen on seen.id = a.id
        where a.container_deployment_id = seen.deployment and a.status = seen.was and a.deleting_at is null
        order by a.id for no key update of a)
      update $schema.application a set status = held.status,
        crash_told_at = case when held.is_failure and held.status = 'error' then :now else a.crash_told_at end,
        unhealthy_told_at = case when held.is_failure and held.status = 'unhealthy' then :now else a.unhealthy_told_at end
      from held where a.id = held.id
      returning a.id, a.project_id, a.name, a.status, held.is_failure`,
      {
        ids: changes.map(({ id }) => id),
        deployments: changes.map(change => change.container_deployment_id),
        was: changes.map(({ was }) => was),
        statuses: changes.map(({ status }) => status),
        ...times
      },
      tx
    )
  }

  async noteStopAsked(id: string, at: Date): Promise<void> {
    await this.db.sql('update $schema.application set stop_asked_at = ? where id = ?', [at, id])
  }

  async markActive(id: string, at: Date): Promise<void> {
    await this.db.sql('update $schema.application set last_activity_at = ? where id = ?', [at, id])
  }

  async markConfigChanged(id: string, at: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.application set config_changed_at = :at, updated_at = :at where id = :id and deleting_at is null',
      { id, at },
      tx
    )
  }

  async setDeployHookEnabled(id: string, enabled: boolean, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.application set deploy_hook_enabled = ? where id = ?',
      [enabled, id],
      tx
    )
  }
}
