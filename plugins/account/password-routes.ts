import { allow, reply, statusResponse, type RouteDeclarer } from 'busbar/sdk'
import { clientOf, type AccountService } from './account-service.js'
import { passwordBody } from './schemas.js'

const group = 'Profile'

export function passwordRoutes (route: RouteDeclarer<AccountService>) {
  route({
    method: 'PUT', url: '/api/auth/password', group, summary: 'Change Own Password',
    access: allow.session({ project: 'none' }),
    schema: { body: passwordBody, response: { 200: statusResponse } },
    audit: { action: 'change_password', resource: 'user' },
    handler: async (request, { identity }) => {
      const { current_password: currentPassword, new_password: newPassword } = request.body
      const { cookies } = await identity.changePassword(request.caller, { currentPassword, newPassword }, clientOf(request))
      return reply(200, { status: 'password updated' }, { cookies })
    }
  })
}
