import { definePlugin } from 'busbar/sdk'
import { caddyContributions, caddyHealth, needs, startProxyCaddy } from './proxy-caddy.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'proxy-caddy',
  needs,
  config: settings,
  start: startProxyCaddy,
  contributes: caddyContributions,
  health: caddyHealth
})
