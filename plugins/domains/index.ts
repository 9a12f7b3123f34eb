import { definePlugin } from 'busbar/sdk'
import { domainContributions, domainHealth, domainServices, needs, startDomains } from './domains.js'
import { jobs, schedules, singletons } from './jobs.js'
import { createDomains } from './migrations/001-create-domains.js'
import { notifications } from './notifications.js'
import { resources } from './resources.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'domains',
  needs,
  config: settings,
  migrations: [createDomains],
  start: startDomains,
  provides: domainServices,
  contributes: domainContributions,
  resources,
  routes,
  jobs,
  schedules,
  singletons,
  notifications,
  health: domainHealth
})
