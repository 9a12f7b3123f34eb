import { identityProblems, newPasswordProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Account } from './account.js'
import { clientOf } from './account-service.js'
import { acceptBody, invitation, invitationQuery, loginResult } from './schemas.js'

const group = 'Public'
const perMinute = (max: number) => ({ max, windowSeconds: 60 })

export function invitationRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url: '/api/auth/invitation',
    group,
    operationId: 'GetInvitation',
    summary: 'Get Invitation',
    description: 'Whom the link of an invitation is for.',
    problems: [
      identityProblems.invitationNotFound,
      identityProblems.invitationAccepted,
      identityProblems.invitationExpired
    ],
    limit: perMinute(30),
    access: allow.public('the token of the link is the credential'),
    schema: { query: invitationQuery, response: { 200: invitation } },
    handler: async ({ query }, { identity }) => await identity.findInvitation(query.token)
  })
  route({
    method: 'POST',
    url: '/api/auth/accept-invitation',
    group,
    operationId: 'AcceptInvitation',
    summary: 'Accept Invitation',
    description: 'Makes the invited user and signs them in.',
    problems: [
      identityProblems.invitationNotFound,
      identityProblems.invitationAccepted,
      identityProblems.invitationExpired,
      identityProblems.emailTaken,
      ...newPasswordProblems
    ],
    limit: perMinute(10),
    access: allow.public('the token of the link in the body is the credential'),
    schema: { body: acceptBody, response: { 200: loginResult } },
    audit: {
      action: 'invitation_accepted',
      claims: 'user.email',
      resource: 'user',
      id: { result: 'user.id' }
    },
    handler: async (request, { account }) => await account.accept(request.body, clientOf(request))
  })
}
