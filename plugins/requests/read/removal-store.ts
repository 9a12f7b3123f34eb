import type { Database } from 'busbar/sdk'
import type { Holder } from './row-shares.js'

/** Deletes rows, so many at a time that who writes meanwhile does not wait long. Each answers how many they were. */
export class RemovalStore {
  constructor(private readonly db: Database) {}

  /** Some of what is older than that, the oldest first. */
  async forget(before: Date, atMost: number): Promise<number> {
    return await this.#delete('recorded_at < :before order by recorded_at limit :atMost', { before, atMost })
  }

  /** How many rows have ever been stored: what was counted at one time can be more by so many at another. */
  async lastPosition(): Promise<number> {
    const [row] = await this.db.sql<{ last_position: number }>('select last_position from $schema.progress')
    return row?.last_position ?? 0
  }

  /** Looks at all rows. */
  async holders(): Promise<readonly Holder[]> {
    return await this.db.sql<Holder>(
      'select application_id as "applicationId", count(*) as rows from $schema.request group by application_id'
    )
  }

  /** Some of the oldest of a holder. */
  async forgetOldest(applicationId: string | null, atMost: number): Promise<number> {
    const own = applicationId === null ? 'application_id is null' : 'application_id = :applicationId'
    return await this.#delete(`${own} order by position limit :atMost`, { applicationId, atMost })
  }

  /** Some of those of an application. */
  async removeOfApplication(applicationId: string, atMost: number): Promise<number> {
    return await this.#delete('application_id = :applicationId limit :atMost', { applicationId, atMost })
  }

  async #delete(chosen: string, values: Readonly<Record<string, unknown>>): Promise<number> {
    const [row] = await this.db.sql<{ deleted: number }>(
      `with gone as (
        delete from $schema.request where position = any (array(select position from $schema.request where ${chosen})) returning 1 as one
      ) select count(*) as deleted from gone`,
      values
    )
    return row?.deleted ?? 0
  }
}
