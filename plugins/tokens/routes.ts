import { identityProblems } from 'busbar/api/identity'
import { allow, type RouteDeclarer, statusResponse } from 'busbar/sdk'
import { problems } from './problems.js'
import { createBody, createdToken, token, tokenParams, tokenReach } from './schemas.js'
import type { Tokens } from './tokens.js'

const group = 'Personal Access Tokens'
/** No token makes, sees or ends tokens, whatever its scope. */
const access = allow.session({ project: 'none' })

export function routes(route: RouteDeclarer<Tokens>) {
  route.list({
    url: '/api/tokens',
    group,
    operationId: 'ListAPITokens',
    summary: 'List API Tokens',
    description: 'The tokens of the caller, the newest first, without their values.',
    access,
    items: token,
    handler: async ({ caller, page }, { tokens }) => await tokens.list(caller, page)
  })
  route({
    method: 'POST',
    url: '/api/tokens',
    group,
    operationId: 'CreateAPIToken',
    summary: 'Create API Token',
    description: 'The answer has the value of the token, this once: only a digest of it is kept.',
    problems: [
      problems.nameMissing,
      problems.scopeInvalid,
      problems.expiryInvalid,
      problems.projectUnreachable,
      identityProblems.sessionEnded
    ],
    idempotent: true,
    access,
    schema: { body: createBody, response: { 201: createdToken } },
    audit: { action: 'token_created', resource: 'token', id: { result: 'id' } },
    handler: async ({ caller, body, requireProject }, { tokens }) =>
      await tokens.create(caller, body, requireProject)
  })
  route({
    method: 'GET',
    url: '/api/tokens/:tokenId/reach',
    group,
    operationId: 'GetAPITokenReach',
    summary: 'Get API Token Reach',
    description:
      'What the token could do now, and when it last did: the projects that it reaches, and the operations that its scope and role allow.',
    problems: [problems.notFound],
    access,
    schema: { params: tokenParams, response: { 200: tokenReach } },
    handler: async ({ caller, params }, { tokens }) => await tokens.reach(caller, params.tokenId)
  })
  route({
    method: 'DELETE',
    url: '/api/tokens/:tokenId',
    group,
    operationId: 'DeleteAPIToken',
    summary: 'Delete API Token',
    description: 'Ends the token: no request is let in with it any more, and what is open with it ends.',
    problems: [problems.notFound],
    access,
    schema: { params: tokenParams, response: { 200: statusResponse } },
    audit: { action: 'token_deleted', resource: 'token', id: { param: 'tokenId' } },
    handler: async ({ caller, params }, { tokens }) => await tokens.delete(caller, params.tokenId)
  })
}
