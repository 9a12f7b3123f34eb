import { applicationTable } from 'busbar/api/applications'
import type { Database, Tx } from 'busbar/sdk'

export interface DiscardedVolume {
  readonly name: string
  readonly application_id: string
  readonly project_id: string
}

/** What was made on the engine, or is about to be, whether users still see it or not. */
export class EngineVolumeStore {
  constructor(private readonly db: Database) {}

  /** Noted before they are made: whatever becomes of the platform in between, they are found again. */
  async note(applicationId: string, names: readonly string[]): Promise<void> {
    await this.db.sql(
      `
      insert into $schema.engine_volume (name, application_id)
      select wanted.name, :applicationId from unnest(cast(:names as text[])) as wanted (name) on conflict (name) do nothing`,
      { applicationId, names: [...names] }
    )
  }

  async find(name: string, tx: Tx): Promise<{ readonly isDiscarded: boolean } | undefined> {
    const [row] = await this.db.sql<{ readonly isDiscarded: boolean }>(
      'select discarded_at is not null as "isDiscarded" from $schema.engine_volume where name = :name',
      { name },
      tx
    )
    return row
  }

  async discard(name: string, now: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      'update $schema.engine_volume set discarded_at = :now where name = :name and discarded_at is null',
      { name, now },
      tx
    )
  }

  /** Also of one that was not made yet: a deploy may be about to. */
  async discardOf(applicationId: string, name: string, now: Date, tx: Tx): Promise<void> {
    await this.db.sql(
      `
      insert into $schema.engine_volume (name, application_id, discarded_at) values (:name, :applicationId, :now)
      on conflict (name) do update set discarded_at = coalesce(engine_volume.discarded_at, excluded.discarded_at)`,
      { applicationId, name, now },
      tx
    )
  }

  async discarded(): Promise<readonly DiscardedVolume[]> {
    return await this.db.sql<DiscardedVolume>(
      `
      select e.name, e.application_id, a.project_id from $schema.engine_volume e
      join ${applicationTable.name} a on a.id = e.application_id
      where e.discarded_at is not null order by e.discarded_at, e.name`
    )
  }

  async of(applicationId: string): Promise<readonly string[]> {
    const rows = await this.db.sql<{ readonly name: string }>(
      'select name from $schema.engine_volume where application_id = ? order by name',
      [applicationId]
    )
    return rows.map(({ name }) => name)
  }

  async forget(name: string): Promise<void> {
    await this.db.sql('delete from $schema.engine_volume where name = ?', [name])
  }
}
