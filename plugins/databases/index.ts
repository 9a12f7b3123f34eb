import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { databaseContributions, needs, startDatabases } from './databases.js'
import { jobs, schedules, singletons } from './jobs.js'
import { createDatabases } from './migrations/001-create-databases.js'
import { createAttachments } from './migrations/002-create-attachments.js'
import { createUpgrades } from './migrations/003-create-upgrades.js'
import { holdAndKeep } from './migrations/004-hold-and-keep.js'
import { keepSettledRestores } from './migrations/005-keep-settled-restores.js'
import { nameNextVolumes } from './migrations/006-name-next-volumes.js'
import { notifications } from './notifications.js'
import { resources } from './resources.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'databases',
  needs,
  config: settings,
  migrations: [
    createDatabases,
    createAttachments,
    createUpgrades,
    holdAndKeep,
    keepSettledRestores,
    nameNextVolumes
  ],
  start: startDatabases,
  contributes: databaseContributions,
  resources,
  notifications,
  routes,
  channels,
  jobs,
  schedules,
  singletons
})
