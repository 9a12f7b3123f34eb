import type { Database, Tx } from 'busbar/sdk'
import type { Trigger } from '../api.js'

/** The one deploy per application that waits for the active one to end. */
export class FollowUpStore {
  readonly #db: Database
  constructor(db: Database) {
    this.#db = db
  }

  async put(applicationId: string, trigger: Trigger, now: Date, tx: Tx): Promise<void> {
    await this.#db.sql(
      `
      insert into $schema.follow_up (application_id, triggered_by, requested_at) values (:applicationId, :trigger, :now)
      on conflict (application_id) do update set triggered_by = excluded.triggered_by, requested_at = excluded.requested_at`,
      { applicationId, trigger, now },
      tx
    )
  }

  async take(applicationId: string, tx: Tx): Promise<Trigger | undefined> {
    const [row] = await this.#db.sql<{ triggered_by: Trigger }>(
      'delete from $schema.follow_up where application_id = ? returning triggered_by',
      [applicationId],
      tx
    )
    return row?.triggered_by
  }

  async drop(applicationId: string): Promise<void> {
    await this.#db.sql('delete from $schema.follow_up where application_id = ?', [applicationId])
  }
}
