import type { Database, Tx } from 'busbar/sdk'

/**
 * Applications whose cache was cleared and that have not been built since. The engine keeps the steps of
 * an image that can still run; what makes the next build start anew is this mark.
 */
export interface CacheClearings {
  /** When it was cleared, unless it has been built since. */
  find(applicationId: string): Promise<Date | undefined>
  mark(applicationId: string, at: Date): Promise<void>
  /** It has been built anew. A clearing that came during the build stays. */
  settle(applicationId: string, at: Date): Promise<void>
}

export class CacheClearingStore implements CacheClearings {
  constructor(private readonly db: Database) {}

  async find(applicationId: string): Promise<Date | undefined> {
    const [row] = await this.db.sql<{ cleared_at: Date | string }>(
      'select cleared_at from $schema.cache_clearing where application_id = ?',
      [applicationId]
    )
    return row === undefined ? undefined : new Date(row.cleared_at)
  }

  async mark(applicationId: string, at: Date): Promise<void> {
    await this.db.sql(
      `insert into $schema.cache_clearing (application_id, cleared_at) values (?, ?)
      on conflict (application_id) do update set cleared_at = excluded.cleared_at`,
      [applicationId, at]
    )
  }

  async settle(applicationId: string, at: Date): Promise<void> {
    await this.db.sql('delete from $schema.cache_clearing where application_id = ? and cleared_at <= ?', [
      applicationId,
      at
    ])
  }

  async remove(applicationId: string, tx?: Tx): Promise<void> {
    await this.db.sql('delete from $schema.cache_clearing where application_id = ?', [applicationId], tx)
  }
}
