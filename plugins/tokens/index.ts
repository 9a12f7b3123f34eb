import { identity } from 'busbar/api/identity'
import { definePlugin } from 'busbar/sdk'
import { routes } from './routes.js'
import { TokenService } from './token-service.js'

export default definePlugin({
  id: 'tokens',
  needs: { identity },
  start: ({ use }) => new TokenService(use.identity),
  routes
})
