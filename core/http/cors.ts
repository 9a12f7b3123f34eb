import type { IncomingMessage, ServerResponse } from 'node:http'
import { setDefaultHeader } from './platform-response.js'
import { leaveUnread } from './unread-body.js'

const allowedHeaders =
  'authorization, content-type, idempotency-key, if-none-match, last-event-id, x-csrf-token'
const exposedHeaders =
  'allow, content-disposition, etag, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, retry-after, x-total-count, x-next-cursor, x-truncated, x-request-id, idempotent-replayed'

/** Sets the CORS headers for an origin of CORS_ORIGINS; true when the request was a preflight and is answered. */
export function applyCors(
  request: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[]
): boolean {
  const { origin } = request.headers
  const isAllowed = origin !== undefined && origins.includes(origin.toLowerCase())
  if (origins.length > 0) setDefaultHeader(response, 'vary', 'Origin')
  if (isAllowed) {
    response.setHeader('access-control-allow-origin', origin)
    response.setHeader('access-control-allow-credentials', 'true')
    response.setHeader('access-control-expose-headers', exposedHeaders)
  }
  if (request.method !== 'OPTIONS') return false
  if (isAllowed && request.headers['access-control-request-method'] !== undefined) {
    response.setHeader('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE')
    response.setHeader('access-control-allow-headers', allowedHeaders)
    response.setHeader('access-control-max-age', '600')
  }
  leaveUnread(request, response)
  response.statusCode = 204
  response.end()
  return true
}
