import type { ProxyRoute, RoutingTable } from 'busbar/api/domains'
import { handlersFault } from '../handlers.js'
import { cleanRoute, hostRoute, longestHead, plainText, platformRoute, unknownHost } from './app-routes.js'
import type { CaddyOptions } from './caddy-options.js'
import type { JsonObject } from './json.js'
import { logging } from './logging.js'
import { answererId, serverName } from './marks.js'
import { certificateFault, tlsParts } from './tls.js'

/** The hostname by which the driver itself asks which configuration is served. */
const probeHost = 'probe.busbar.invalid'

/** What Caddy is to serve, and what of the table it cannot. */
export interface Built {
  readonly config: JsonObject
  /** By hostname, why it is not served as it was asked for: half-sentences, with what helps. */
  readonly hostFaults: ReadonlyMap<string, string>
}

/** Routes that Caddy has refused, and why, by their ids. */
type RefusedRoutes = ReadonlyMap<string, string>
const none: RefusedRoutes = new Map()

/** The whole configuration, by nothing but what is given. */
export function caddyConfig(
  table: RoutingTable,
  options: CaddyOptions,
  refused: RefusedRoutes = none
): Built {
  const faults = new Map(refused)
  for (const route of table.routes) {
    const fault = faultOf(route)
    if (fault !== null) faults.set(route.id, fault)
  }
  const context = { options, trustedProxies: table.trustedProxies, faults }
  const usable = table.certificates.filter(certificate => certificateFault(certificate) === null)
  const tls = tlsParts(table, usable, options)
  const { httpPort, httpsPort, bind } = options
  const listen = (port: number): string => `${bind.includes(':') ? `[${bind}]` : bind}:${port}`
  return {
    hostFaults: hostFaultsOf(table, faults, new Set(usable.map(({ id }) => id))),
    config: {
      '@id': options.mark,
      admin: options.admin,
      logging: logging(options),
      ...(options.storage !== null && { storage: { module: 'file_system', root: options.storage } }),
      apps: {
        http: {
          http_port: httpPort,
          https_port: httpsPort,
          grace_period: `${options.graceSeconds}s`,
          servers: {
            [serverName]: {
              '@id': answererId(options.resolver),
              listen: [listen(httpPort), listen(httpsPort)],
              // HTTP/3 of Caddy 2.6 is a preview with known faults.
              protocols: ['h1', 'h2'],
              // What gets certificates, and what is led to TLS, is said for each name.
              automatic_https: { disable: true },
              tls_connection_policies: tls.policies,
              read_header_timeout: '60s',
              idle_timeout: '120s',
              max_header_bytes: longestHead,
              routes: [
                requestId,
                cleanRoute(table.platform, table.trustedProxies),
                ...(table.platform === null ? [] : [platformRoute(table.platform, context)]),
                ...byHost(table.routes).map(([hostname, routes]) => hostRoute(hostname, routes, context)),
                { handle: [unknownHost] }
              ],
              errors: { routes: errorRoutes },
              ...(options.accessLog && options.logDirectory !== null && { logs: { skip_hosts: [probeHost] } })
            }
          }
        },
        tls: tls.app,
        ...(options.issuer.kind === 'internal' && {
          pki: { certificate_authorities: { local: { install_trust: false } } }
        })
      }
    }
  }
}

const withId: JsonObject = { set: { 'X-Request-Id': ['{http.request.uuid}'] } }
/** At once for what the proxy itself answers, and behind what a rule of an owner makes of an application's answer. */
const requestId: JsonObject = {
  handle: [
    { handler: 'headers', response: withId },
    { handler: 'headers', response: { ...withId, deferred: true } }
  ]
}

const sentences: ReadonlyArray<readonly [string, string, string]> = [
  ['502', 'The application did not answer.', 'http_request_error'],
  ['503', 'The application is not running.', 'destination_unavailable'],
  ['504', 'The application took too long to answer.', 'connection_timeout']
]
/** `Proxy-Status` (RFC 9209) tells errors of the proxy from those of the application. */
const errorRoutes: readonly JsonObject[] = [
  ...sentences.map(([code, sentence, error]) => ({
    match: [{ vars: { '{http.error.status_code}': [code] } }],
    terminal: true,
    handle: [
      {
        handler: 'static_response',
        status_code: code,
        headers: { ...plainText, 'Proxy-Status': [`caddy; error=${error}`] },
        body: `${sentence}\n`
      }
    ]
  })),
  {
    handle: [
      {
        handler: 'static_response',
        status_code: '{http.error.status_code}',
        headers: plainText,
        body: '{http.error.status_text}\n'
      }
    ]
  }
]

/** In the order of the table: exact names come first. */
function byHost(routes: readonly ProxyRoute[]): ReadonlyArray<readonly [string, readonly ProxyRoute[]]> {
  const hosts = new Map<string, ProxyRoute[]>()
  for (const route of routes) {
    const known = hosts.get(route.hostname)
    if (known === undefined) hosts.set(route.hostname, [route])
    else known.push(route)
  }
  return [...hosts]
    .map(([hostname, all]) => [hostname, all.toSorted((a, b) => b.path.length - a.path.length)] as const)
    .toSorted(([a], [b]) => Number(a.startsWith('*.')) - Number(b.startsWith('*.')))
}

/** Why a route cannot be served by stock Caddy; null where it can. */
function faultOf({ features, handlers }: ProxyRoute): string | null {
  if (features.some(({ type }) => type === 'rate_limit'))
    return 'Caddy cannot do rate_limit: leave it out, or serve the hostname by the built-in proxy'
  // They may have been saved while nobody looked at them.
  const fault = handlersFault(handlers)
  return fault === null ? null : `its advanced_config is not allowed (${fault}): correct it`
}

function hostFaultsOf(
  { routes, certificates, platform }: RoutingTable,
  faults: RefusedRoutes,
  usable: ReadonlySet<string>
): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  for (const { id, hostname } of routes) {
    const fault = faults.get(id)
    if (fault !== undefined) found.set(hostname, `It is answered with 503: ${fault}`)
  }
  const served = [...routes, ...(platform === null ? [] : [platform])]
  for (const { hostname, tls } of served) {
    if (tls.mode !== 'custom' || usable.has(tls.certificateId) || found.has(hostname)) continue
    const broken = certificates.find(({ id }) => id === tls.certificateId)
    const reason = broken === undefined ? 'it cannot be decrypted' : certificateFault(broken)
    found.set(hostname, `Its certificate cannot be served, ${reason}: upload it again and choose the new one`)
  }
  return found
}
