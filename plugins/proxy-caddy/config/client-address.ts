import type { Json, JsonObject } from './json.js'

/** How many proxies that are believed may stand one behind another; with more, nobody is let in. */
const mostProxies = 3
const original = 'X-Busbar-Forwarded-For'
const rest = 'X-Busbar-Forwarded-Rest'

const forbidden: JsonObject = {
  handler: 'static_response',
  status_code: 403,
  headers: { 'Content-Type': ['text/plain; charset=utf-8'] },
  body: 'Forbidden\n'
}
const nobody: JsonObject = { handler: 'subroute', routes: [{ handle: [forbidden] }] }

/**
 * Lets in who is in `ranges`, by the address of the client. Behind proxies that are believed that is the first address of
 * `X-Forwarded-For`, from the right, that is none of theirs.
 *
 * Caddy's matcher can look at the *first* address of that header, which anybody may have written. So the address that counts is
 * put there, from the right, as far as trusted proxies have written, and everything back into its place afterwards.
 */
export function allowlist(ranges: readonly string[], trusted: readonly string[]): JsonObject {
  if (ranges.length === 0) return nobody
  const isTrusted = (forwarded: boolean): JsonObject => addressIn(trusted, forwarded)
  const inside = (forwarded: boolean): JsonObject => addressIn(ranges, forwarded)
  if (trusted.length === 0)
    return { handler: 'subroute', routes: [{ match: [{ not: [inside(false)] }], handle: [forbidden] }] }
  return {
    handler: 'subroute',
    routes: [...checked(inside(false), isTrusted(false), forwardedCheck(isTrusted(true), inside(true)))]
  }
}

/** Who is trusted is asked for whom it speaks; who is neither that nor inside is shut out. In a `not`, none may match. */
const checked = (inside: JsonObject, trusted: JsonObject, next: JsonObject): readonly JsonObject[] => [
  { match: [{ not: [inside, trusted] }], handle: [forbidden] },
  { match: [trusted], handle: [next] }
]

const addressIn = (ranges: readonly string[], forwarded: boolean): JsonObject => ({
  remote_ip: { ranges: [...ranges], ...(forwarded && { forwarded: true }) }
})

function forwardedCheck(trusted: JsonObject, inside: JsonObject): JsonObject {
  const header = (name: string): string => `{http.request.header.${name}}`
  return {
    handler: 'subroute',
    routes: [
      {
        handle: [
          // Several headers of one name are one list.
          changed({ set: { [original]: [header('X-Forwarded-For')], [rest]: [header('X-Forwarded-For')] } }),
          level(mostProxies, trusted, inside),
          changed({ set: { 'X-Forwarded-For': [header(original)] }, delete: [original, rest] })
        ]
      }
    ]
  }
}

/** Looks at the last address that is left, and at the one before it where that is of a proxy. */
function level(left: number, trusted: JsonObject, inside: JsonObject): JsonObject {
  const step: readonly Json[] = [
    changed({
      set: { 'X-Forwarded-For': [`{http.request.header.${rest}}`] },
      replace: {
        'X-Forwarded-For': [
          { search_regexp: '^.*,[ \\t]*', replace: '' },
          // Of an empty one Caddy takes the address of the connection.
          { search_regexp: '^$', replace: 'unknown' }
        ]
      }
    }),
    changed({ replace: { [rest]: [{ search_regexp: '(?:^|,)[^,]*$', replace: '' }] } })
  ]
  const next = left <= 1 ? forbidden : level(left - 1, trusted, inside)
  return { handler: 'subroute', routes: [{ handle: step }, ...checked(inside, trusted, next)] }
}

const changed = (request: JsonObject): JsonObject => ({ handler: 'headers', request })
