import { identity } from 'busbar/api/identity'
import { mailPost } from 'busbar/api/mail'
import { definePlugin, kernel, optional } from 'busbar/sdk'
import { userRemoval } from './api.js'
import { invitationRoutes } from './invitation-routes.js'
import { InvitationService } from './invitation-service.js'
import { routes } from './routes.js'
import { UserService } from './user-service.js'

export default definePlugin({
  id: 'users',
  needs: { identity, removal: userRemoval, database: kernel.database, instance: kernel.instance, mail: optional(mailPost) },
  start: ({ use }) => new UserService(use.identity, use.removal, new InvitationService(use)),
  routes (route) {
    routes(route)
    invitationRoutes(route)
  }
})
