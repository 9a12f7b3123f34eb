import { definePlugin } from 'busbar/sdk'
import { environmentContributions, environmentServices, needs, startEnvironment } from './environment.js'
import { createVariables } from './migrations/001-create-variables.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'environment',
  needs,
  migrations: [createVariables],
  start: startEnvironment,
  provides: environmentServices,
  contributes: environmentContributions,
  routes
})
