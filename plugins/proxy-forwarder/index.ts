import { definePlugin } from 'busbar/sdk'
import { forwarderContributions, forwarderHealth, needs, startProxyForwarder } from './proxy-forwarder.js'
import { settings } from './settings.js'

export default definePlugin({
  id: 'proxy-forwarder',
  needs,
  config: settings,
  start: startProxyForwarder,
  contributes: forwarderContributions,
  health: forwarderHealth
})
