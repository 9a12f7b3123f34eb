import { identityProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, reply } from 'busbar/sdk'
import { createdInvitation, invitation, invitationParams, inviteBody } from './schemas.js'
import type { Users } from './users.js'

const group = 'Users (Admin)'

export function invitationRoutes(route: RouteDeclarer<Users>) {
  route({
    method: 'POST',
    url: '/api/users/invite',
    group,
    operationId: 'InviteUser',
    summary: 'Invite User',
    description:
      'Sends a link that works once, for seven days. A new invitation to the same address takes the place of the former. Without mail, the answer has the link.',
    problems: [identityProblems.emailInvalid, identityProblems.sessionEnded, identityProblems.emailTaken],
    limit: { max: 10, windowSeconds: 60 },
    idempotent: true,
    access: allow.session({ role: 'admin', project: 'none' }),
    schema: { body: inviteBody, response: { 201: createdInvitation } },
    audit: { action: 'invitation_sent', resource: 'invitation', id: { result: 'id' } },
    handler: async ({ caller, body }, { invitations }) => await invitations.invite(caller, body)
  })
  route.list({
    url: '/api/users/invitations',
    group,
    operationId: 'ListPendingInvitations',
    summary: 'Get Invitations',
    description: 'Those that can still be accepted, the newest first.',
    items: invitation,
    access: allow.token('read', { role: 'admin', project: 'none' }),
    handler: async ({ page }, { invitations }) => await invitations.list(page)
  })
  route({
    method: 'DELETE',
    url: '/api/users/invitations/:invitationId',
    group,
    operationId: 'RevokeInvitation',
    summary: 'Revoke Invitation',
    description: 'The link works no longer.',
    problems: [identityProblems.invitationNotFound],
    access: allow.token('write', { role: 'admin', project: 'none' }),
    schema: { params: invitationParams, response: { 204: null } },
    audit: { action: 'invitation_revoked', resource: 'invitation', id: { param: 'invitationId' } },
    handler: async ({ params }, { invitations }) => {
      await invitations.revoke(params.invitationId)
      return reply(204, null)
    }
  })
}
