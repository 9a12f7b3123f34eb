import { definePlugin } from 'busbar/sdk'
import { events } from './events.js'
import { singletons } from './jobs.js'
import { createInbox } from './migrations/001-create-inbox.js'
import { needs, notificationContributions, startNotifications } from './notifications.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'notifications',
  needs,
  config: settings,
  migrations: [createInbox],
  start: startNotifications,
  contributes: notificationContributions,
  routes,
  events,
  singletons
})
