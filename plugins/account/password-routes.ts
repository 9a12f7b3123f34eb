import { identityProblems, newPasswordProblems, proofProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Account } from './account.js'
import { clientOf } from './account-service.js'
import { forgotBody, passwordBody, resetBody } from './schemas.js'

const group = 'Profile'

export function passwordRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'PUT',
    url: '/api/auth/password',
    group,
    operationId: 'ChangeOwnPassword',
    summary: 'Change Own Password',
    description: 'Ends the other sessions of the user and gives this one new cookies; tokens stay.',
    problems: [...proofProblems, ...newPasswordProblems],
    access: allow.session({ project: 'none' }),
    schema: { body: passwordBody, response: { 200: statusResponse } },
    audit: { action: 'change_password', resource: 'user' },
    handler: async (request, { identity }) => {
      const { current_password: currentPassword, new_password: newPassword } = request.body
      const { cookies } = await identity.changePassword(
        request.caller,
        { currentPassword, newPassword },
        clientOf(request)
      )
      return reply(200, { status: 'password updated' }, { cookies })
    }
  })
  route({
    method: 'POST',
    url: '/api/auth/forgot-password',
    group: 'Public',
    operationId: 'ForgotPassword',
    summary: 'Forgot Password',
    description:
      'Mails a link for a new password, when an account has the address; the answer is the same whether or not one has.',
    limit: { max: 3, windowSeconds: 3600 },
    access: allow.public(
      'who has forgotten the password has no credential; every address gets the same answer'
    ),
    schema: { body: forgotBody, response: { 200: statusResponse } },
    audit: { action: 'password_reset_requested', claims: 'email', resource: 'user' },
    handler: async ({ body }, { recovery }) => await recovery.request(body.email)
  })
  route({
    method: 'POST',
    url: '/api/auth/reset-password',
    group: 'Public',
    operationId: 'ResetPassword',
    summary: 'Reset Password',
    description:
      'Sets a password with the token of the mailed link, which works once and for thirty minutes, and ends all sessions and tokens of the user.',
    problems: [
      identityProblems.resetInvalid,
      identityProblems.resetUsed,
      identityProblems.resetExpired,
      ...newPasswordProblems
    ],
    limit: { max: 10, windowSeconds: 60 },
    access: allow.public('the token of the link in the body is the credential'),
    schema: { body: resetBody, response: { 200: statusResponse } },
    audit: { action: 'password_reset_completed', resource: 'user', id: { result: 'user_id' } },
    handler: async (request, { recovery }) => await recovery.complete(request.body, clientOf(request))
  })
}
