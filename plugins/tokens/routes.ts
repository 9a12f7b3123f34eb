import { allow, list, readPage, reply, statusResponse, type RouteDeclarer, wholeList } from 'busbar/sdk'
import { createBody, createdToken, listQuery, token, tokenReach } from './schemas.js'
import type { TokenService } from './token-service.js'

const group = 'Personal Access Tokens'
/** No token makes, sees or ends tokens, whatever its scope. */
const access = allow.session({ project: 'none' })

export function routes (route: RouteDeclarer<TokenService>) {
  route({
    method: 'GET', url: '/api/tokens', group, summary: 'List API Tokens', access,
    schema: { query: listQuery, response: { 200: list(token) } },
    handler: async ({ caller, query }, tokens) => {
      const { rows, total } = await tokens.list(caller, readPage(query, wholeList))
      return reply(200, rows, { headers: { 'X-Total-Count': String(total) } })
    }
  })
  route({
    method: 'POST', url: '/api/tokens', group, summary: 'Create API Token', access,
    schema: { body: createBody, response: { 201: createdToken } },
    audit: { action: 'token_created', resource: 'token', id: { result: 'id' } },
    handler: async ({ caller, body, requireProject }, tokens) => await tokens.create(caller, body, requireProject)
  })
  route({
    method: 'GET', url: '/api/tokens/:tokenId/reach', group, summary: 'Get API Token Reach', access,
    schema: { response: { 200: tokenReach } },
    handler: async ({ caller, params }, tokens) => await tokens.reach(caller, params.tokenId)
  })
  route({
    method: 'DELETE', url: '/api/tokens/:tokenId', group, summary: 'Delete API Token', access,
    schema: { response: { 200: statusResponse } },
    audit: { action: 'token_deleted', resource: 'token', id: { param: 'tokenId' } },
    handler: async ({ caller, params }, tokens) => await tokens.delete(caller, params.tokenId)
  })
}
