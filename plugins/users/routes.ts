import { allow, type RouteDeclarer, type RouteRequest, statusResponse } from 'busbar/sdk'
import { invitationRoutes } from './invitation-routes.js'
import { createBody, passwordBody, roleBody, totpResetBody, user, userAfterRoleChange } from './schemas.js'
import type { Users } from './users.js'

const group = 'Users (Admin)'
const one = '/api/users/:userId'
/** No token creates, changes or deletes users, whatever its scope. */
const adminSession = allow.session({ role: 'admin', project: 'none' })
const id = { param: 'userId' } as const
const tenPerMinute = { max: 10, windowSeconds: 60 }

const clientOf = ({ ip, headers }: Pick<RouteRequest, 'ip' | 'headers'>) => ({
  ip,
  userAgent: headers['user-agent'],
  cookies: headers.cookie
})

export function routes(route: RouteDeclarer<Users>) {
  route.list({
    url: '/api/users',
    group,
    operationId: 'ListUsers',
    summary: 'Get Users',
    items: user,
    access: allow.token('read', { role: 'admin', project: 'none' }),
    handler: async ({ page }, { users }) => await users.list(page)
  })
  route({
    method: 'POST',
    url: '/api/users',
    group,
    operationId: 'CreateUser',
    summary: 'Create User',
    access: adminSession,
    limit: tenPerMinute,
    schema: { body: createBody, response: { 201: user } },
    audit: { action: 'create_user', resource: 'user', id: { result: 'id' } },
    handler: async ({ body }, { users }) => await users.create(body)
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteUser',
    summary: 'Delete User',
    access: adminSession,
    schema: { response: { 200: statusResponse } },
    audit: { action: 'delete_user', resource: 'user', id },
    handler: async ({ caller, params }, { users }) => await users.delete(caller, params.userId)
  })
  route({
    method: 'PUT',
    url: `${one}/role`,
    group,
    operationId: 'UpdateUserRole',
    summary: 'Update User Role',
    access: adminSession,
    schema: { body: roleBody, response: { 200: userAfterRoleChange } },
    audit: { action: 'update_user_role', resource: 'user', id },
    handler: async ({ params, body }, { users }) => await users.changeRole(params.userId, body.role)
  })
  route({
    method: 'PUT',
    url: `${one}/password`,
    group,
    operationId: 'ResetUserPassword',
    summary: 'Reset User Password',
    access: adminSession,
    limit: tenPerMinute,
    schema: { body: passwordBody, response: { 200: statusResponse } },
    audit: { action: 'reset_user_password', resource: 'user', id },
    handler: async (request, { users }) =>
      await users.resetPassword(request.caller, request.params.userId, request.body, clientOf(request))
  })
  route({
    method: 'POST',
    url: `${one}/totp/reset`,
    group,
    operationId: 'AdminResetUserTOTP',
    summary: 'Admin Reset User TOTP',
    access: adminSession,
    schema: { body: totpResetBody, response: { 200: statusResponse } },
    audit: { action: 'totp.admin_reset', resource: 'user', id },
    handler: async (request, { users }) =>
      await users.resetTotp(request.caller, request.params.userId, request.body, clientOf(request))
  })
  invitationRoutes(route)
}
