import { applicationTable } from 'busbar/api/applications'
import type { Clock, Database } from 'busbar/sdk'

/** Projects whose build engine may be started, and when it was last used, whichever process did that. */
export interface StartedEngines {
  /** Before it starts, and when a build in it has ended. */
  used(projectId: string): Promise<void>
  /** Stopped, or gone. */
  ended(projectId: string): Promise<void>
  /** Those in which nothing has been built since, and is not being built now. */
  idleSince(time: Date): Promise<readonly string[]>
}

export class StartedEngineStore implements StartedEngines {
  constructor(
    private readonly db: Database,
    private readonly clock: Pick<Clock, 'now'>
  ) {}

  async used(projectId: string): Promise<void> {
    await this.db.sql(
      `
      insert into $schema.build_engine (project_id, used_at) values (:projectId, :now)
      on conflict (project_id) do update set used_at = excluded.used_at`,
      { projectId, now: this.clock.now() }
    )
  }

  async ended(projectId: string): Promise<void> {
    await this.db.sql('delete from $schema.build_engine where project_id = :projectId', { projectId })
  }

  async idleSince(time: Date): Promise<readonly string[]> {
    // A preparation lasts from before its engine starts until after its build, if its process says that it lives.
    const rows = await this.db.sql<{ readonly projectId: string }>(
      `
      select e.project_id as "projectId" from $schema.build_engine e
      where e.used_at <= :time and not exists (
        select from $schema.preparation p
        join ${applicationTable.name} a on cast(a.id as text) = p.application_id
        where cast(a.project_id as text) = e.project_id and p.claimed_until > :now)`,
      { time, now: this.clock.now() }
    )
    return rows.map(({ projectId }) => projectId)
  }
}
