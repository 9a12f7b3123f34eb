import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { schedules, singletons } from './jobs.js'
import { logContributions, logServices, needs, startLogs } from './logs.js'
import { createLogs } from './migrations/001-create-logs.js'
import { compressFaster } from './migrations/002-compress-faster.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'logs',
  needs,
  config: settings,
  migrations: [createLogs, compressFaster],
  start: startLogs,
  provides: logServices,
  contributes: logContributions,
  routes,
  channels,
  schedules,
  singletons
})
