import type { AlertPreferences, AlertSettings } from '../api.js'
import type { AlertPreferenceStore } from './alert-preference-store.js'
import { problems } from '../problems.js'

export const defaultAlertPreferences: AlertPreferences = Object.freeze({
  deploy_failures: true, deploy_success: true, build_failures: true, quota_threshold: true, quota_threshold_percent: 80
})

export function createAlertSettings (store: AlertPreferenceStore): AlertSettings {
  return {
    alertPreferences: async userId => await store.find(userId) ?? defaultAlertPreferences,
    async updateAlertPreferences (userId, changes) {
      const { quota_threshold_percent: percent } = changes
      if (percent !== undefined && (percent < 1 || percent > 100)) throw problems.quotaPercent()
      const given = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined))
      return await store.put(userId, given, defaultAlertPreferences)
    }
  }
}
