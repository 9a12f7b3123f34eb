import type { HeaderChanges, RouteFeature } from 'busbar/api/domains'
import { allowlist } from './client-address.js'
import type { JsonObject } from './json.js'
import { literal, quoted, re2 } from './literal.js'

/** What a feature is in Caddy: handlers, in order. Undefined where it has none for it. */
export function handlersOf(
  feature: RouteFeature,
  trustedProxies: readonly string[]
): readonly JsonObject[] | undefined {
  switch (feature.type) {
    case 'basic_auth':
      return [basicAuth(feature.username, feature.hashedPassword)]
    case 'headers':
      return [
        ...(feature.request === undefined ? [] : requestHeaders(feature.request)),
        ...(feature.response === undefined ? [] : responseHeaders(feature.response))
      ]
    case 'ip_allowlist':
      return [allowlist(feature.ranges, trustedProxies)]
    case 'redirect':
      return [redirect(feature)]
    default:
      return undefined
  }
}

const basicAuth = (username: string, hash: string): JsonObject => ({
  handler: 'authentication',
  providers: {
    http_basic: {
      accounts: [{ username: literal(username), password: hash }],
      hash: { algorithm: 'bcrypt' },
      // A hash takes a tenth of a second: without it each request of a page would.
      hash_cache: {}
    }
  }
})

/** One handler for each kind of change: in one, Caddy would add before it takes away. */
const requestHeaders = (changes: HeaderChanges): readonly JsonObject[] =>
  inOrder(changes).map(request => ({ handler: 'headers', request }))

/** Answers pass the handlers from the last to the first. Deferred until the application's headers are there. */
const responseHeaders = (changes: HeaderChanges): readonly JsonObject[] =>
  inOrder(changes)
    .toReversed()
    .map(response => ({ handler: 'headers', response: { ...response, deferred: true } }))

const inOrder = ({ delete: removed = [], set = {}, add = {} }: HeaderChanges): readonly JsonObject[] => [
  ...(removed.length === 0 ? [] : [{ delete: [...removed] }]),
  ...(Object.keys(set).length === 0 ? [] : [{ set: literalValues(set) }]),
  ...(Object.keys(add).length === 0 ? [] : [{ add: literalValues(add) }])
]

const literalValues = (values: Readonly<Record<string, readonly string[]>>): JsonObject =>
  Object.fromEntries(Object.entries(values).map(([name, all]) => [name, all.map(literal)]))

function redirect({ from, to, statusCode }: RouteFeature & { readonly type: 'redirect' }): JsonObject {
  return {
    handler: 'subroute',
    routes: [
      {
        match: [exactPath(from)],
        handle: [
          {
            handler: 'static_response',
            status_code: statusCode,
            headers: { Location: [literal(to)], 'Content-Type': ['text/plain; charset=utf-8'] },
            body: literal(`Moved to ${to}\n`)
          }
        ]
      }
    ]
  }
}

/** The path as it was asked for: Caddy's own matchers look at what they have decoded, in any case. */
const exactPath = (path: string): JsonObject => ({
  vars_regexp: { '{http.request.orig_uri}': re2(`^${quoted(path)}(?:[?#]|$)`) }
})
