import { identityProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Account } from './account.js'
import { alertPreferences, alertPreferencesBody } from './schemas.js'

const group = 'Profile'
const url = '/api/account/alert-preferences'

export function alertRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url,
    group,
    operationId: 'GetAlertPreferences',
    summary: 'Get Alert Preferences',
    description: 'What the user wants to be told of.',
    access: allow.token('read', { project: 'none' }),
    schema: { response: { 200: alertPreferences } },
    handler: async ({ caller }, { identity }) => await identity.alertPreferences(caller.user.id)
  })
  route({
    method: 'PUT',
    url,
    group,
    operationId: 'UpdateAlertPreferences',
    summary: 'Update Alert Preferences',
    description: 'What the body leaves out stays.',
    problems: [identityProblems.quotaPercent],
    access: allow.token('write', { project: 'none' }),
    schema: { body: alertPreferencesBody, response: { 200: alertPreferences } },
    audit: { action: 'update_alert_preferences', resource: 'user' },
    handler: async ({ caller, body }, { identity }) =>
      await identity.updateAlertPreferences(caller.user.id, body)
  })
}
