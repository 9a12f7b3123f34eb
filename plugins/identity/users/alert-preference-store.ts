import { type AlertPreference, alertPreferences, type Database, type Tx } from 'busbar/sdk'
import type { AlertPreferences } from '../api.js'

const columns = [...alertPreferences, 'quota_threshold_percent'] as const

export class AlertPreferenceStore {
  constructor(private readonly db: Database) {}

  async find(userId: string): Promise<AlertPreferences | undefined> {
    return await this.#rows()
      .where({ user_id: userId })
      .first(...columns)
  }

  /** What is not given stays as it is, and is as in `defaults` when there is no row yet. */
  async put(
    userId: string,
    changes: Partial<AlertPreferences>,
    defaults: AlertPreferences
  ): Promise<AlertPreferences> {
    const row = { user_id: userId, ...defaults, ...changes }
    const insert = this.#rows().insert(row).onConflict('user_id')
    const [kept] = await (Object.keys(changes).length === 0
      ? insert.merge(['user_id'])
      : insert.merge(changes)
    ).returning([...columns])
    return kept ?? { ...defaults, ...changes }
  }

  /** Those of the users who have no row, or one that says yes. */
  async wanting(preference: AlertPreference, userIds: readonly string[], tx?: Tx): Promise<string[]> {
    const rows = await this.db.sql<{ id: string }>(
      `
      select wanted.id from unnest(cast(:userIds as uuid[])) as wanted (id)
      where not exists (select from $schema.alert_preference p where p.user_id = wanted.id and not p.${preference})`,
      { userIds },
      tx
    )
    return rows.map(({ id }) => id)
  }

  #rows() {
    return this.db.table<AlertPreferences & { user_id: string }>('alert_preference')
  }
}
