import type { Database } from 'busbar/sdk'

/** Deletes rows, so many at a time that who writes meanwhile does not wait long. Each answers how many they were. */
export class RemovalStore {
  constructor(private readonly db: Database) {}

  /** Some of what is older than that, the oldest first. */
  async forget(before: Date, atMost: number): Promise<number> {
    return await this.#delete('recorded_at < :before order by recorded_at limit :atMost', { before, atMost })
  }

  /** Some of what is beyond so many rows, those first that were stored first. */
  async forgetBeyond(rows: number, atMost: number): Promise<number> {
    // Each row has a position of its own, and they are given without gaps.
    return await this.#delete(
      'position <= (select last_position from $schema.progress) - :rows order by position limit :atMost',
      { rows, atMost }
    )
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
