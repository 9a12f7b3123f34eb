import { definePlugin } from 'busbar/sdk'
import { channels } from './channels.js'
import { needs, startPlatform } from './platform.js'
import { routes } from './routes.js'

export default definePlugin({
  id: 'platform',
  needs,
  start: startPlatform,
  routes,
  channels
})
