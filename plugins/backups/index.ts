import { definePlugin } from 'busbar/sdk'
import { backupContributions, backupServices, needs, startBackups } from './backups.js'
import { events } from './events.js'
import { jobs, schedules } from './jobs.js'
import { createBackups } from './migrations/001-create-backups.js'
import { addSignsOfLife } from './migrations/002-add-signs-of-life.js'
import { addWaitingSchedules } from './migrations/003-add-waiting-schedules.js'
import { notifications } from './notifications.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'backups',
  needs,
  config: settings,
  migrations: [createBackups, addSignsOfLife, addWaitingSchedules],
  start: startBackups,
  provides: backupServices,
  contributes: backupContributions,
  routes,
  events,
  jobs,
  schedules,
  notifications
})
