import { definePlugin } from 'busbar/sdk'
import { routes } from './routes.js'
import { needs, startTokens } from './tokens.js'

export default definePlugin({
  id: 'tokens',
  needs,
  start: startTokens,
  routes
})
