import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { singletons } from './jobs.js'
import { metricsContributions, metricsHealth, needs, startMetrics } from './metrics.js'
import { createHostPoints } from './migrations/001-create-host-points.js'
import { createApplicationPoints } from './migrations/002-create-application-points.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'metrics',
  needs,
  config: settings,
  migrations: [createHostPoints, createApplicationPoints],
  start: startMetrics,
  contributes: metricsContributions,
  routes,
  channels,
  singletons,
  health: metricsHealth
})
