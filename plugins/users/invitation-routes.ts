import { allow, list, readPage, reply, type RouteDeclarer, wholeList } from 'busbar/sdk'
import { createdInvitation, invitation, inviteBody, listQuery } from './schemas.js'
import type { UserService } from './user-service.js'

const group = 'Users (Admin)'

export function invitationRoutes (route: RouteDeclarer<UserService>) {
  route({
    method: 'POST', url: '/api/users/invite', group, summary: 'Invite User', limit: { max: 10, windowSeconds: 60 },
    access: allow.session({ role: 'admin', project: 'none' }),
    schema: { body: inviteBody, response: { 201: createdInvitation } },
    audit: { action: 'invitation_sent', resource: 'invitation', id: { result: 'id' } },
    handler: async ({ caller, body }, { invitations }) => await invitations.invite(caller, body)
  })
  route({
    method: 'GET', url: '/api/users/invitations', group, summary: 'Get Invitations',
    access: allow.token('read', { role: 'admin', project: 'none' }),
    schema: { query: listQuery, response: { 200: list(invitation) } },
    handler: async ({ query }, { invitations }) => {
      const { rows, total } = await invitations.list(readPage(query, wholeList))
      return reply(200, [...rows], { headers: { 'X-Total-Count': String(total) } })
    }
  })
  route({
    method: 'DELETE', url: '/api/users/invitations/:invitationId', group, summary: 'Revoke Invitation',
    access: allow.token('write', { role: 'admin', project: 'none' }),
    schema: { response: { 204: null } },
    audit: { action: 'invitation_revoked', resource: 'invitation', id: { param: 'invitationId' } },
    handler: async ({ params }, { invitations }) => {
      await invitations.revoke(params.invitationId)
      return reply(204, null)
    }
  })
}
