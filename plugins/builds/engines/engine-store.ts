import { applicationTable } from 'busbar/api/applications'
import { projectTable } from 'busbar/api/projects'
import type { Clock, Database } from 'busbar/sdk'

/** The build engine of a project, as far as it is known. */
interface EngineRecord {
  readonly projectId: string
  /** The user whose project it is; of one that is gone, the project itself. */
  readonly ownerId: string
  readonly usedAt: Date
  /** Something is being built in it now, by whichever process. */
  readonly isBusy: boolean
}

/** Projects that have a build engine, whether it may be started, and when it was last used, whichever process did that. */
export interface EngineRecords {
  /** Before it starts, and when a build in it has ended. */
  used(projectId: string): Promise<void>
  /** It keeps its cache. */
  stopped(projectId: string): Promise<void>
  /** It is gone, with its cache. */
  removed(projectId: string): Promise<void>
  /** Those that may be started, in which nothing has been built since, and is not being built now. */
  idleSince(time: Date): Promise<readonly string[]>
  all(): Promise<readonly EngineRecord[]>
  /** Now, after what `all` said. */
  isBusy(projectId: string): Promise<boolean>
  /** The deployments for which something is being built in it now, by whichever process. */
  live(projectId: string): Promise<readonly string[]>
  /** Deployments whose process died while their images were prepared, in projects whose engine may be started. */
  abandoned(): Promise<ReadonlyArray<{ readonly projectId: string; readonly deploymentId: string }>>
}

/** A preparation lasts from before its engine starts until after its build, if its process says that it lives. */
const isBusyNow = `exists (
  select from $schema.preparation p
  join ${applicationTable.name} a on cast(a.id as text) = p.application_id
  where cast(a.project_id as text) = e.project_id and p.claimed_until > :now)`

export class EngineStore implements EngineRecords {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>
  ) {}

  async used(projectId: string): Promise<void> {
    await this.db.sql(
      `
      insert into $schema.build_engine (project_id, used_at) values (:projectId, :now)
      on conflict (project_id) do update set used_at = excluded.used_at, is_started = true`,
      { projectId, now: this.clock.now() }
    )
  }

  async stopped(projectId: string): Promise<void> {
    await this.db.sql('update $schema.build_engine set is_started = false where project_id = :projectId', {
      projectId
    })
  }

  async removed(projectId: string): Promise<void> {
    await this.db.sql('delete from $schema.build_engine where project_id = :projectId', { projectId })
  }

  async idleSince(time: Date): Promise<readonly string[]> {
    const rows = await this.db.sql<{ readonly projectId: string }>(
      `
      select project_id as "projectId" from $schema.build_engine e
      where is_started and used_at <= :time and not ${isBusyNow} order by used_at`,
      { time, now: this.clock.now() }
    )
    return rows.map(({ projectId }) => projectId)
  }

  async all(): Promise<readonly EngineRecord[]> {
    return await this.db.sql<EngineRecord>(
      `select project_id as "projectId", used_at as "usedAt", ${isBusyNow} as "isBusy",
        coalesce((select cast(o.user_id as text) from ${projectTable.name} o where cast(o.id as text) = e.project_id), project_id) as "ownerId"
      from $schema.build_engine e`,
      { now: this.clock.now() }
    )
  }

  async isBusy(projectId: string): Promise<boolean> {
    const rows = await this.db.sql(
      `select from $schema.build_engine e where project_id = :projectId and ${isBusyNow}`,
      { projectId, now: this.clock.now() }
    )
    return rows.length > 0
  }

  async live(projectId: string): Promise<readonly string[]> {
    const rows = await this.db.sql<{ readonly deploymentId: string }>(
      `
      select p.deployment_id as "deploymentId" from $schema.preparation p
      join ${applicationTable.name} a on cast(a.id as text) = p.application_id
      where cast(a.project_id as text) = :projectId and p.claimed_until > :now`,
      { projectId, now: this.clock.now() }
    )
    return rows.map(({ deploymentId }) => deploymentId)
  }

  async abandoned(): Promise<ReadonlyArray<{ readonly projectId: string; readonly deploymentId: string }>> {
    return await this.db.sql<{ readonly projectId: string; readonly deploymentId: string }>(
      `
      select e.project_id as "projectId", p.deployment_id as "deploymentId" from $schema.preparation p
      join ${applicationTable.name} a on cast(a.id as text) = p.application_id
      join $schema.build_engine e on e.project_id = cast(a.project_id as text)
      where e.is_started and p.claimed_until <= :now`,
      { now: this.clock.now() }
    )
  }
}
