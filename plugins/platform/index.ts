import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { needs, platformContributions, platformServices, startPlatform } from './platform.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'platform',
  needs,
  start: startPlatform,
  provides: platformServices,
  contributes: platformContributions,
  routes,
  channels
})
