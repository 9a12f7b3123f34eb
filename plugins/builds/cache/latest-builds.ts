import type { Database } from 'busbar/sdk'

/** Of the latest build that succeeded: what the next one can begin with. */
interface LatestBuild {
  readonly builtAt: Date
  readonly stageEnds: readonly string[]
}

export interface LatestBuilds {
  find(applicationId: string): Promise<LatestBuild | undefined>
  save(applicationId: string, build: LatestBuild): Promise<void>
}

export class LatestBuildStore implements LatestBuilds {
  constructor(private readonly db: Database) {}

  async find(applicationId: string): Promise<LatestBuild | undefined> {
    const [row] = await this.db.sql<{ built_at: Date | string; stage_ends: string[] }>(
      'select built_at, stage_ends from $schema.latest_build where application_id = ?',
      [applicationId]
    )
    return row === undefined ? undefined : { builtAt: new Date(row.built_at), stageEnds: row.stage_ends }
  }

  async save(applicationId: string, { builtAt, stageEnds }: LatestBuild): Promise<void> {
    await this.db.sql(
      `insert into $schema.latest_build (application_id, built_at, stage_ends) values (?, ?, cast(? as text[]))
      on conflict (application_id) do update set built_at = excluded.built_at, stage_ends = excluded.stage_ends`,
      [applicationId, builtAt, [...stageEnds]]
    )
  }

  async remove(applicationId: string): Promise<void> {
    await this.db.sql('delete from $schema.latest_build where application_id = ?', [applicationId])
  }
}
