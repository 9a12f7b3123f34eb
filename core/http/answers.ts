import type { ServerResponse } from 'node:http'
import type { Cookie, Problem } from 'busbar/sdk'
import { setDefaultHeader } from './platform-response.js'
import { leaveUnread } from './unread-body.js'

/** Sent with every answer. The API is no page: nothing may be framed, sniffed, kept or loaded from it. */
const usualHeaders: ReadonlyArray<readonly [string, string]> = [
  ['x-content-type-options', 'nosniff'],
  ['x-frame-options', 'DENY'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['cache-control', 'no-store']
]

const strictTransport = ['strict-transport-security', 'max-age=31536000'] as const

export function setCommonHeaders(
  response: ServerResponse,
  requestId: string,
  transportSecurity: boolean
): void {
  for (const [name, value] of usualHeaders) setDefaultHeader(response, name, value)
  setDefaultHeader(response, 'x-request-id', requestId)
  if (transportSecurity) setDefaultHeader(response, ...strictTransport)
}

/** The same, for what is written by hand. */
export const commonHeaders = (
  requestId: string,
  transportSecurity: boolean
): ReadonlyArray<readonly [string, string]> => [
  ...usualHeaders,
  ['x-request-id', requestId],
  ...(transportSecurity ? [strictTransport] : [])
]

/** `{ error, code, …details }`, written without fastify: for what is refused before a plugin is reached. */
export function sendProblem(
  response: ServerResponse,
  problem: Pick<Problem, 'status' | 'code' | 'message'> & Partial<Pick<Problem, 'details' | 'headers'>>
): void {
  if (response.headersSent) return
  leaveUnread(response.req, response)
  const body = Buffer.from(JSON.stringify({ error: problem.message, code: problem.code, ...problem.details }))
  // Every 401 says how to sign in (RFC 9110, 15.5.2). Of this scheme no browser makes a dialog.
  if (problem.status === 401) response.setHeader('www-authenticate', 'Bearer realm="busbar"')
  for (const [name, value] of Object.entries(problem.headers ?? {})) response.setHeader(name, value)
  response.statusCode = problem.status
  response.setHeader('content-type', 'application/json; charset=utf-8')
  response.setHeader('content-length', body.length)
  response.end(body)
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  if (response.headersSent) return
  leaveUnread(response.req, response)
  response.statusCode = status
  response.setHeader('content-type', 'text/plain; charset=utf-8')
  response.end(text)
}

/** SameSite=Lax always; Secure when the platform is reached over TLS. Values are the kernel's own, so they need no quoting. */
export function cookieHeader(
  { name, value, path, httpOnly, maxAgeSeconds }: Cookie,
  secure: boolean
): string {
  return [
    `${name}=${value}`,
    `Path=${path}`,
    `Max-Age=${maxAgeSeconds < 0 ? 0 : maxAgeSeconds}`,
    'SameSite=Lax',
    ...(httpOnly ? ['HttpOnly'] : []),
    ...(secure ? ['Secure'] : [])
  ].join('; ')
}
