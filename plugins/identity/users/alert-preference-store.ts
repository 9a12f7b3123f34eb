import type { Database } from 'busbar/sdk'
import type { AlertPreferences } from '../api.js'

export interface AlertPreferenceStore {
  find(userId: string): Promise<AlertPreferences | undefined>
  /** What is not given stays as it is, and is as in `defaults` when there is no row yet. */
  put(userId: string, changes: Partial<AlertPreferences>, defaults: AlertPreferences): Promise<AlertPreferences>
}

const columns = ['deploy_failures', 'deploy_success', 'build_failures', 'quota_threshold', 'quota_threshold_percent'] as const

export function createAlertPreferenceStore (database: Database): AlertPreferenceStore {
  const rows = () => database.table<AlertPreferences & { user_id: string }>('alert_preference')

  return Object.freeze<AlertPreferenceStore>({
    find: async userId => await rows().where({ user_id: userId }).first(...columns),
    async put (userId, changes, defaults) {
      const row = { user_id: userId, ...defaults, ...changes }
      const insert = rows().insert(row).onConflict('user_id')
      const [kept] = await (Object.keys(changes).length === 0 ? insert.merge(['user_id']) : insert.merge(changes)).returning([...columns])
      return kept ?? { ...defaults, ...changes }
    }
  })
}
