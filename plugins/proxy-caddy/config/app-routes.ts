import type { PlatformRoute, ProxyRoute } from 'busbar/api/domains'
import { applicationName } from '../dns/names.js'
import type { CaddyOptions } from './caddy-options.js'
import { handlersOf } from './features.js'
import type { Json, JsonObject } from './json.js'
import { literal, quoted, re2 } from './literal.js'
import { hostId } from './marks.js'
import { cookieReplacements, setCookieReplacements, suspectSetCookies } from './platform-cookies.js'

/** How soon Caddy asks again where an application is. */
export const refreshMs = 250
/** While a container cannot be connected to, it may be on its way to another place. */
const tryFor = '3s'

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
  handle: [cleanRequest(trustedProxies)]
})

const cleanRequest = (trustedProxies: readonly string[]): JsonObject => ({
  handler: 'headers',
  request: {
    delete: [
      'Proxy',
      'Forwarded',
      'X-Real-Ip',
      ...(trustedProxies.length > 0 ? [] : ['X-Forwarded-Port']),
      // CGI, and all that took its variables over, makes the same of X_Forwarded_For as of X-Forwarded-For.
      ...['For', 'Proto', 'Host', 'Port'].flatMap(what => [
        `X_Forwarded_${what}`,
        `X-Forwarded_${what}`,
        `X_Forwarded-${what}`
      ]),
      'X_Real_Ip',
      'X-Real_Ip',
      'X_Real-Ip'
    ],
    replace: { Cookie: cookieReplacements }
  },
  // When the application's headers are there.
  response: { replace: { 'Set-Cookie': setCookieReplacements }, deferred: true }
})

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
  return [
    ...route.features.flatMap(feature => handlersOf(feature, trustedProxies) ?? [unserved]),
    ...(route.handlers as readonly JsonObject[]),
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
  { resolver }: CaddyOptions,
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
    ...trusting(trustedProxies)
  }
}

const trusting = (trustedProxies: readonly string[]): JsonObject =>
  trustedProxies.length === 0 ? {} : { trusted_proxies: [...trustedProxies] }
