import { identityProblems, newPasswordProblems, proofProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, type RouteRequest, statusResponse } from 'busbar/sdk'
import { invitationRoutes } from './invitation-routes.js'
import { problems } from './problems.js'
import {
  createBody,
  passwordBody,
  roleBody,
  totpResetBody,
  user,
  userAfterRoleChange,
  userParams
} from './schemas.js'
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
    description: 'All users, who came first first.',
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
    description:
      'Makes a user with a password that the admin passes on. To have users choose their own, invite them.',
    problems: [identityProblems.emailInvalid, identityProblems.emailTaken, ...newPasswordProblems],
    idempotent: true,
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
    description: 'Deletes the user with sessions and tokens. Whoever still owns projects cannot be deleted.',
    problems: [
      identityProblems.ownAccount,
      identityProblems.lastAdminDeleted,
      identityProblems.userNotFound,
      identityProblems.userOwns,
      { ...problems.inUse, message: 'a plugin still needs the user, in its own words' }
    ],
    access: adminSession,
    schema: { params: userParams, response: { 200: statusResponse } },
    audit: { action: 'delete_user', resource: 'user', id },
    handler: async ({ caller, params }, { users }) => await users.delete(caller, params.userId)
  })
  route({
    method: 'PUT',
    url: `${one}/role`,
    group,
    operationId: 'UpdateUserRole',
    summary: 'Update User Role',
    description:
      'Changes the role and ends the sessions of the user. Tokens act with the lower of the role at their issue and the one now.',
    problems: [identityProblems.lastAdminDemoted, identityProblems.userNotFound],
    access: adminSession,
    schema: { params: userParams, body: roleBody, response: { 200: userAfterRoleChange } },
    audit: { action: 'update_user_role', resource: 'user', id },
    handler: async ({ params, body }, { users }) => await users.changeRole(params.userId, body.role)
  })
  route({
    method: 'PUT',
    url: `${one}/password`,
    group,
    operationId: 'ResetUserPassword',
    summary: 'Reset User Password',
    description:
      'Sets a password, with the proof of the acting admin, and ends all sessions and tokens of the user.',
    problems: [...proofProblems, ...newPasswordProblems, identityProblems.userNotFound],
    access: adminSession,
    limit: tenPerMinute,
    schema: { params: userParams, body: passwordBody, response: { 200: statusResponse } },
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
    description:
      'Takes the second factor of a user away, with the proof of the acting admin, and ends all sessions of the user.',
    problems: [...proofProblems, identityProblems.userNotFound, identityProblems.totpDisabled],
    access: adminSession,
    schema: { params: userParams, body: totpResetBody, response: { 200: statusResponse } },
    audit: { action: 'totp.admin_reset', resource: 'user', id },
    handler: async (request, { users }) =>
      await users.resetTotp(request.caller, request.params.userId, request.body, clientOf(request))
  })
  invitationRoutes(route)
}
