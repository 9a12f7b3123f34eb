import { type AlertPreference, alertPreferences, type Tx } from 'busbar/sdk'
import type { AlertPreferences, AlertSettings } from '../api.js'
import { problems } from '../problems.js'
import type { AlertPreferenceStore } from './alert-preference-store.js'

const defaultAlertPreferences: AlertPreferences = Object.freeze({
  deploy_failures: true,
  deploy_success: true,
  build_failures: true,
  quota_threshold: true,
  quota_threshold_percent: 80
})

export class AlertSettingService implements AlertSettings {
  constructor(private readonly store: AlertPreferenceStore) {}

  async alertPreferences(userId: string): Promise<AlertPreferences> {
    return (await this.store.find(userId)) ?? defaultAlertPreferences
  }

  async updateAlertPreferences(
    userId: string,
    changes: Partial<AlertPreferences>
  ): Promise<AlertPreferences> {
    const { quota_threshold_percent: percent } = changes
    if (percent !== undefined && (percent < 1 || percent > 100)) throw problems.quotaPercent()
    const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
    return await this.store.put(userId, given, defaultAlertPreferences)
  }

  async wanting(
    preference: AlertPreference,
    userIds: readonly string[],
    tx?: Tx
  ): Promise<readonly string[]> {
    // It stands in SQL, and callers may have read it from somewhere.
    if (!alertPreferences.includes(preference)) throw new TypeError(`"${preference}" is no alert preference`)
    return userIds.length === 0 ? [] : await this.store.wanting(preference, userIds, tx)
  }
}
