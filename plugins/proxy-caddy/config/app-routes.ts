import type { PlatformRoute, ProxyRoute } from 'busbar/api/domains'
import type { PasswordAccount } from 'busbar/sdk/http1'
import { applicationName } from '../dns/names.js'
import { type AccessQuestion, accessCheck, withPasswordChecks } from './access-check.js'
import type { CaddyOptions } from './caddy-options.js'
import { handlersOf, headersSetBy } from './features.js'
import type { Json, JsonObject } from './json.js'
import { literal, quoted, re2 } from './literal.js'
import { hostId } from './marks.js'
import { cookieReplacements, setCookieReplacements, suspectSetCookies } from './platform-cookies.js'

/** Of an answer's head: more is no answer, and would fill the access log, which all applications share. */
export const longestHead = 32_768
/** How soon Caddy asks again where an application is. */
export const refreshMs = 250
/** While a container cannot be connected to, it may be on its way to another place. */
const tryFor = '3s'

/** Of Caddy 2.7 and later: how long WebSockets stay open under a configuration of before. */
export const streamDelay = 'stream_close_delay'
const streamsStay = '24h'

export const plainText = { 'Content-Type': ['text/plain; charset=utf-8'] }
const answer = (status: number, sentence: string): JsonObject => ({
  handler: 'static_response',
  status_code: status,
  headers: plainText,
  body: `${sentence}\n`
})
export const unknownHost = answer(404, 'Nothing is served under this name here.')
const unknownPath = answer(404, 'Nothing is served under this path here.')
const badTarget = answer(400, 'The path of this request leads out of where it begins.')
const unserved = answer(
  503,
  'This hostname cannot be served the way it is set up: the proxy of this platform cannot do all that its rules ask for. Its owner sees what is missing.'
)

interface RouteContext {
  readonly options: CaddyOptions
  readonly trustedProxies: readonly string[]
  /** Routes that are not served as they are, by their ids. */
  readonly faults: ReadonlyMap<string, string>
}

/** The rule for one hostname. `routes` are all of that name, the one with the longest path first. */
export function hostRoute(
  hostname: string,
  routes: readonly ProxyRoute[],
  context: RouteContext
): JsonObject {
  return {
    '@id': hostId(hostname),
    match: [{ host: namesOf(hostname) }],
    terminal: true,
    handle: [
      {
        handler: 'subroute',
        routes: [
          ...(routes.some(({ forceHttps }) => forceHttps) ? [httpsRoute(context)] : []),
          ...(routes.some(isConfined) ? [{ match: [climbing], handle: [badTarget] }] : []),
          ...routes.map(route => pathRoute(route, context)),
          { handle: [unknownPath] }
        ]
      }
    ]
  }
}

/** The hostname of the platform: its cookies pass, and it has to know who asks. */
export function platformRoute(route: PlatformRoute, context: RouteContext): JsonObject {
  const { header, value } = context.options.ownProxy
  const { host, port } = route.upstream
  return {
    '@id': hostId(route.hostname),
    match: [{ host: namesOf(route.hostname) }],
    terminal: true,
    handle: [
      {
        handler: 'subroute',
        routes: [
          ...(route.forceHttps ? [httpsRoute(context)] : []),
          {
            handle: [
              {
                handler: 'reverse_proxy',
                upstreams: [{ dial: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}` }],
                load_balancing: { try_duration: tryFor, try_interval: '100ms' },
                headers: {
                  request: {
                    set: { [header]: [literal(value)], 'X-Request-Id': ['{http.request.uuid}'] },
                    delete: ['Forwarded', 'X-Real-Ip', 'Proxy']
                  }
                },
                ...(context.options.keepsStreams && { [streamDelay]: streamsStay }),
                ...trusting(context.trustedProxies)
              }
            ]
          }
        ]
      }
    ]
  }
}

/** With the dot of a whole name too, by which a browser may ask. */
const namesOf = (hostname: string): readonly string[] => [hostname, `${hostname}.`]

/** Over TLS already, or to a proxy in front that says so and is believed. */
function httpsRoute({ options, trustedProxies }: RouteContext): JsonObject {
  const port = options.httpsPort === 443 ? '' : `:${options.httpsPort}`
  const isSecure: JsonObject = {
    remote_ip: { ranges: [...trustedProxies] },
    header: { 'X-Forwarded-Proto': ['https'] }
  }
  return {
    match: [{ protocol: 'http', ...(trustedProxies.length > 0 && { not: [isSecure] }) }],
    handle: [
      {
        handler: 'static_response',
        status_code: 301,
        headers: { Location: [`https://{http.request.host}${port}{http.request.uri}`] }
      }
    ]
  }
}

/**
 * Before anything that an application's owner has written can see the request; once for all hostnames but that of the platform, as
 * Caddy would compile its expressions for each.
 */
export const cleanRoute = (
  platform: PlatformRoute | null,
  trustedProxies: readonly string[]
): JsonObject => ({
  ...(platform !== null && { match: [{ not: [{ host: namesOf(platform.hostname) }] }] }),
  handle: [{ handler: 'subroute', routes: [withoutH2c, { handle: [cleanRequest(trustedProxies)] }] }]
})

const cleanRequest = (trustedProxies: readonly string[]): JsonObject => ({
  handler: 'headers',
  request: {
    delete: [
      'Proxy',
      'Forwarded',
      'X-Real-Ip',
      ...(trustedProxies.length > 0 ? [] : ['X-Forwarded-Port']),
      ...spoken.flatMap(otherSpellings)
    ],
    replace: { Cookie: cookieReplacements, Connection: kept(endToEnd) }
  },
  // When the application's headers are there.
  response: { replace: { 'Set-Cookie': setCookieReplacements }, deferred: true }
})

/** What the proxy tells applications, or a message is framed by. */
const spoken = [
  'X-Forwarded-For',
  'X-Forwarded-Proto',
  'X-Forwarded-Host',
  'X-Forwarded-Port',
  'X-Real-Ip',
  'X-Request-Id',
  'Content-Length',
  'Transfer-Encoding'
]

/** CGI, and all that took its variables over, makes the same of X_Forwarded_For, and of X-Forwarded_For, as of X-Forwarded-For. */
function otherSpellings(name: string): readonly string[] {
  const [first = '', ...others] = name.split('-')
  const all = others.reduce<readonly string[]>(
    (begun, part) => begun.flatMap(text => [`${text}-${part}`, `${text}_${part}`]),
    [first]
  )
  return all.filter(spelling => spelling !== name)
}

/** Meant for the other end (RFC 9110, 7.6.1): see `header-rules` of the built-in forwarder. */
const endToEnd = [
  'Host',
  'Content-Length',
  'Content-Type',
  'Content-Encoding',
  'Cookie',
  'Authorization',
  'Origin',
  'Expect',
  'Cache-Control'
]

/**
 * Caddy takes out, behind all handlers, what a client names in `Connection`: what handlers have set as well. A comma in the place of
 * a name, so that what is left of a longer one becomes no other.
 */
const kept = (names: readonly string[]): readonly JsonObject[] => [
  { search_regexp: `(?i)${names.map(quoted).join('|')}`, replace: ',' }
]

/**
 * In another protocol, requests could come that were not looked at: HTTP/2 is offered to no application. What was to become it is
 * an ordinary request.
 */
const withoutH2c: JsonObject = {
  match: [{ header_regexp: { Upgrade: re2('(?i)(?:^|,)\\s*h2c\\s*(?:,|$)') } }],
  handle: [{ handler: 'headers', request: { delete: ['Upgrade', 'Http2-Settings', 'Connection'] } }]
}

const isConfined = ({ path, internalPath }: ProxyRoute): boolean => path !== '/' || internalPath !== ''

/** A path that leads out of where it begins, as a server may read it: see `climbs` of the built-in forwarder. */
const climbing: JsonObject = {
  vars_regexp: {
    '{http.request.orig_uri}': re2('(?i)^[^?#]*(?:/|\\\\|%2f|%5c)(?:\\.|%2e){1,2}(?:/|\\\\|%2f|%5c|[?#]|$)')
  }
}

function pathRoute(route: ProxyRoute, context: RouteContext): JsonObject {
  return {
    ...(route.path !== '/' && { match: [{ path_regexp: re2(`^${quoted(route.path)}(?:/|$)`) }] }),
    terminal: true,
    handle: context.faults.has(route.id) ? [unserved] : servedBy(route, context)
  }
}

function servedBy(route: ProxyRoute, { options, trustedProxies }: RouteContext): readonly Json[] {
  const set = headersSetBy(route)
  const ask = (question: AccessQuestion): JsonObject => accessCheck(question, options, trustedProxies)
  const askPassword = (accounts: readonly PasswordAccount[]): JsonObject =>
    ask({
      kind: 'passwords',
      routeId: route.id,
      accounts: accounts.map(({ username, hashedPassword }) => ({ username, hashedPassword }))
    })
  const context = {
    isBehindProxies: trustedProxies.length > 0,
    askPassword,
    askAddress: (ranges: readonly string[]) => ask({ kind: 'addresses', ranges })
  }
  return [
    ...(set.length === 0 ? [] : [{ handler: 'headers', request: { replace: { Connection: kept(set) } } }]),
    ...route.features.flatMap(feature => handlersOf(feature, context) ?? [unserved]),
    ...withPasswordChecks(route.handlers, askPassword),
    ...rewrite(route),
    forward(route, options, trustedProxies)
  ]
}

/** By the path as it is written, which is not decoded and encoded anew. */
function rewrite({ path, stripPath, internalPath }: ProxyRoute): readonly JsonObject[] {
  const strips = stripPath && path !== '/'
  if (!strips && internalPath === '') return []
  return [
    {
      handler: 'rewrite',
      ...(strips && { strip_path_prefix: path }),
      ...(internalPath !== '' && {
        path_regexp: [{ find: '^/?', replace: `${internalPath.replaceAll('$', '$$$$')}/` }]
      })
    }
  ]
}

/**
 * Where the application is, Caddy asks the platform: by service records, because these have a port. So a deploy, a stop and a start
 * change nothing here. The addresses of their targets are asked for there, too.
 */
function forward(
  { applicationId, containerPort }: ProxyRoute,
  { resolver, keepsStreams }: CaddyOptions,
  trustedProxies: readonly string[]
): JsonObject {
  const addresses = [
    `udp/${resolver.host.includes(':') ? `[${resolver.host}]` : resolver.host}:${resolver.port}`
  ]
  return {
    handler: 'reverse_proxy',
    dynamic_upstreams: {
      source: 'srv',
      name: applicationName(applicationId, containerPort),
      refresh: `${refreshMs}ms`,
      resolver: { addresses }
    },
    load_balancing: { try_duration: tryFor, try_interval: '50ms' },
    transport: {
      protocol: 'http',
      resolver: { addresses },
      versions: ['1.1'],
      compression: false,
      max_response_header_size: longestHead,
      // Less than the five seconds after which a server of Node closes: a request must not meet a connection that is ending.
      keep_alive: { idle_timeout: '4s', max_idle_conns_per_host: 64 }
    },
    headers: {
      request: { set: { 'X-Request-Id': ['{http.request.uuid}'] } },
      response: { delete: ['X-Request-Id'] }
    },
    handle_response: [
      {
        match: { status_code: [101], headers: { 'Set-Cookie': suspectSetCookies } },
        routes: [{ handle: [answer(502, 'The application would set a cookie of the platform.')] }]
      }
    ],
    ...(keepsStreams && { [streamDelay]: streamsStay }),
    ...trusting(trustedProxies)
  }
}

const trusting = (trustedProxies: readonly string[]): JsonObject =>
  trustedProxies.length === 0 ? {} : { trusted_proxies: [...trustedProxies] }
