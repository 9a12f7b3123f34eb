import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { singletons } from './jobs.js'
import { createRequests } from './migrations/001-create-requests.js'
import { needs, requestContributions, requestServices, requestsHealth, startRequests } from './requests.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'requests',
  needs,
  config: settings,
  migrations: [createRequests],
  start: startRequests,
  provides: requestServices,
  contributes: requestContributions,
  routes,
  channels,
  singletons,
  health: requestsHealth
})
