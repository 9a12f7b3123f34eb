import { definePlugin } from 'busbar/sdk'
import { events } from './events.js'
import { singletons } from './jobs.js'
import { createVolumes } from './migrations/001-create-volumes.js'
import { addBackupWork } from './migrations/002-add-backup-work.js'
import { identifyBackupWork } from './migrations/003-identify-backup-work.js'
import { keepSettledRestores } from './migrations/004-keep-settled-restores.js'
import { holdBackupWork } from './migrations/005-hold-backup-work.js'
import { keepBackups } from './migrations/006-keep-backups.js'
import { resources } from './resources.js'
import { routes } from './routes.js'
import { needs, startVolumes, volumeContributions } from './volumes.js'

export default definePlugin({
  id: 'volumes',
  needs,
  migrations: [
    createVolumes,
    addBackupWork,
    identifyBackupWork,
    keepSettledRestores,
    holdBackupWork,
    keepBackups
  ],
  start: startVolumes,
  contributes: volumeContributions,
  resources,
  routes,
  events,
  singletons
})
