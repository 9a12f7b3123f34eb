import { definePlugin } from 'busbar/sdk'
import { directContributions, directHealth, directServices, needs, startDirect } from './direct.js'
import { events } from './events.js'
import { singletons } from './jobs.js'
import { createAddresses } from './migrations/001-create-addresses.js'
import { createReleasedPorts } from './migrations/002-create-released-ports.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'direct',
  needs,
  config: settings,
  migrations: [createAddresses, createReleasedPorts],
  start: startDirect,
  provides: directServices,
  contributes: directContributions,
  singletons,
  events,
  health: directHealth
})
