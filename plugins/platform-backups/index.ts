import { definePlugin } from 'busbar/sdk'
import { jobs, singletons } from './jobs.js'
import { createBackups } from './migrations/001-create-backups.js'
import { addInstallation } from './migrations/002-add-installation.js'
import { notifications } from './notifications.js'
import { backupContributions, backupServices, needs, startPlatformBackups } from './platform-backups.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'platform-backups',
  needs,
  config: settings,
  migrations: [createBackups, addInstallation],
  start: startPlatformBackups,
  provides: backupServices,
  contributes: backupContributions,
  routes,
  jobs,
  singletons,
  notifications
})
