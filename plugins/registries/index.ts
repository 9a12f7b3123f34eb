import { definePlugin } from 'busbar/sdk'
import { createAccounts } from './migrations/001-create-accounts.js'
import { needs, registryContributions, registryServices, startRegistries } from './registries.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'registries',
  needs,
  migrations: [createAccounts],
  start: startRegistries,
  provides: registryServices,
  contributes: registryContributions,
  routes
})
