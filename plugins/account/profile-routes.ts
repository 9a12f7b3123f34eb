import { identityProblems } from 'busbar/api/identity'
import { allow, pageOf, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import type { Account } from './account.js'
import { problems } from './problems.js'
import { profile, profileBody, session, sessionParams } from './schemas.js'

const group = 'Profile'

export function profileRoutes(route: RouteDeclarer<Account>) {
  route({
    method: 'GET',
    url: '/api/auth/me',
    group,
    operationId: 'Me',
    summary: 'Get Profile',
    description: 'Who the credential is of.',
    problems: [problems.accountGone],
    access: allow.token('read', { project: 'none', whileEnrolling: true }),
    schema: { response: { 200: profile } },
    handler: async ({ caller }, { account }) => await account.profile(caller)
  })
  route({
    method: 'PUT',
    url: '/api/auth/profile',
    group,
    operationId: 'UpdateProfile',
    summary: 'Update Profile',
    description: 'What the body leaves out stays.',
    problems: [identityProblems.userNotFound],
    access: allow.session({ project: 'none' }),
    schema: { body: profileBody, response: { 200: profile } },
    audit: { action: 'update_profile', resource: 'user', id: { result: 'id' } },
    handler: async ({ caller, body }, { account }) => await account.updateProfile(caller, body)
  })
  route.list({
    url: '/api/auth/sessions',
    group,
    operationId: 'ListOwnSessions',
    summary: 'List Own Sessions',
    description: 'Where the user is signed in.',
    access: allow.session({ project: 'none' }),
    items: session,
    handler: async ({ caller, page }, { account }) => pageOf(page, await account.sessions(caller))
  })
  route({
    method: 'DELETE',
    url: '/api/auth/sessions/:sessionId',
    group,
    operationId: 'EndOwnSession',
    summary: 'End Own Session',
    description:
      'Signs the user out there: what is open with that session ends. Of the session that asks, the cookies are taken away too.',
    problems: [problems.sessionNotFound],
    access: allow.session({ project: 'none' }),
    schema: { params: sessionParams, response: { 200: statusResponse } },
    audit: { action: 'session_ended', resource: 'session', id: { param: 'sessionId' } },
    handler: async ({ caller, params }, { account }) => await account.endSession(caller, params.sessionId)
  })
}
