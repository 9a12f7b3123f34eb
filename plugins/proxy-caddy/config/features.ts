import type { HeaderChanges, ProxyRoute, RouteFeature } from 'busbar/api/domains'
import type { PasswordAccount } from 'busbar/sdk/http1'
import { allowlist } from './allowlist.js'
import type { JsonObject } from './json.js'
import { literal, quoted, re2 } from './literal.js'

interface FeatureContext {
  /** Whether clients may come through proxies, whose word on where they are counts. */
  readonly isBehindProxies: boolean
  /** The handler that asks for one of these passwords. */
  readonly askPassword: (accounts: readonly PasswordAccount[]) => JsonObject
  /** The one that asks whether the client is in these ranges. */
  readonly askAddress: (ranges: readonly string[]) => JsonObject
}

/** What a feature is in Caddy: handlers, in order. Undefined where it has none for it. */
export function handlersOf(
  feature: RouteFeature,
  { isBehindProxies, askPassword, askAddress }: FeatureContext
): readonly JsonObject[] | undefined {
  switch (feature.type) {
    case 'basic_auth':
      return [askPassword([feature])]
    case 'headers':
      return [
        ...(feature.request === undefined ? [] : requestHeaders(feature.request)),
        ...(feature.response === undefined ? [] : responseHeaders(feature.response))
      ]
    case 'ip_allowlist':
      return [
        isBehindProxies && feature.ranges.length > 0 ? askAddress(feature.ranges) : allowlist(feature.ranges)
      ]
    case 'redirect':
      return [redirect(feature)]
    default:
      return undefined
  }
}

/** The headers of a request that the owner of a route has set, for the application to rely on. */
export function headersSetBy({
  features,
  handlers
}: Pick<ProxyRoute, 'features' | 'handlers'>): readonly string[] {
  const names = features.flatMap(feature =>
    feature.type === 'headers' ? Object.keys({ ...feature.request?.set, ...feature.request?.add }) : []
  )
  return [...new Set([...names, ...namedIn(handlers)])].toSorted()
}

/** In handlers of `advanced_config`, also those of subroutes. */
function namedIn(part: unknown): readonly string[] {
  if (typeof part !== 'object' || part === null) return []
  const { handler, request } = part as { readonly handler?: unknown; readonly request?: unknown }
  if (handler === 'headers') {
    const { set, add, replace } = Object(request) as Readonly<Record<string, object | undefined>>
    return Object.keys({ ...set, ...add, ...replace })
  }
  return Object.values(part).flatMap(namedIn)
}

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
