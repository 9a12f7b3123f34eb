import { identity } from 'busbar/api/identity'
import { definePlugin } from 'busbar/sdk'
import { userRemoval } from './api.js'
import { routes } from './routes.js'
import { UserService } from './user-service.js'

export default definePlugin({
  id: 'users',
  needs: { identity, removal: userRemoval },
  start: ({ use }) => new UserService(use.identity, use.removal),
  routes
})
