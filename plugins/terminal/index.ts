import { definePlugin } from 'busbar/sdk'
import { singletons } from './jobs.js'
import { createSessions } from './migrations/001-create-sessions.js'
import { routes } from './routes.js'
import { settings } from './settings.js'
import { sockets } from './sockets.js'
import { needs, startTerminal, terminalContributions } from './terminal.js'

export default definePlugin({
  id: 'terminal',
  needs,
  config: settings,
  migrations: [createSessions],
  start: startTerminal,
  contributes: terminalContributions,
  routes,
  sockets,
  singletons
})
