import { definePlugin } from 'busbar/sdk'
import { needs, startAuditLogs } from './audit-logs.js'
import { singletons } from './jobs.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'audit-logs',
  needs,
  config: settings,
  start: startAuditLogs,
  routes,
  singletons
})
