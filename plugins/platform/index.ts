import { builders } from 'busbar/api/builds'
import { identity } from 'busbar/api/identity'
import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { createPlatformService } from './platform-service.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'platform',
  needs: { identity, builders },
  start: ({ use }) => createPlatformService(use),
  routes,
  channels
})
