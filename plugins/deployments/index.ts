import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { deploymentContributions, deploymentServices, needs, startDeployments } from './deployments.js'
import { jobs, singletons } from './jobs.js'
import { createDeployments } from './migrations/001-create-deployments.js'
import { addBuildQueue } from './migrations/002-add-build-queue.js'
import { addHttpCheck } from './migrations/003-add-http-check.js'
import { addOldVersionKilled } from './migrations/004-add-old-version-killed.js'
import { addTurn } from './migrations/005-add-turn.js'
import { addBuildSteps } from './migrations/006-add-build-steps.js'
import { notifications } from './notifications.js'
import { resources } from './resources.js'
import { routes } from './routes.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'deployments',
  needs,
  config: settings,
  migrations: [createDeployments, addBuildQueue, addHttpCheck, addOldVersionKilled, addTurn, addBuildSteps],
  start: startDeployments,
  provides: deploymentServices,
  contributes: deploymentContributions,
  resources,
  notifications,
  routes,
  channels,
  jobs,
  singletons
})
