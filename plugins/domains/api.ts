import type { ServedCertificate } from 'busbar/api/certificates'
import type { TrafficSwitch, TrafficTarget } from 'busbar/api/deployments'
import { event, extensionPoint, service } from 'busbar/sdk'

/**
 * What a driver may be able to do. `tls`: serves with certificates that it is given; `acme`: has certificates issued, and renews
 * them; the others are route features, and handlers of its own (`advanced_config`).
 */
export const proxyAbilities = [
  'tls',
  'acme',
  'basic_auth',
  'headers',
  'ip_allowlist',
  'redirect',
  'rate_limit',
  'advanced_config'
] as const
export type ProxyAbility = (typeof proxyAbilities)[number]

/** Sets, adds and takes away headers, by name. */
export interface HeaderChanges {
  readonly set?: Readonly<Record<string, readonly string[]>>
  readonly add?: Readonly<Record<string, readonly string[]>>
  readonly delete?: readonly string[]
}

/** What a route does beyond forwarding, checked when it was saved. In the order in which it is applied. */
export type RouteFeature =
  | { readonly type: 'basic_auth'; readonly username: string; readonly hashedPassword: string }
  | { readonly type: 'headers'; readonly request?: HeaderChanges; readonly response?: HeaderChanges }
  /** Of no range at all, nobody is let in. */
  | { readonly type: 'ip_allowlist'; readonly ranges: readonly string[] }
  | { readonly type: 'redirect'; readonly from: string; readonly to: string; readonly statusCode: number }
  /** `rate`: `10/s`, `m` or `h`, as many at once, and evenly from then on; `burst`: so many more at once; `key`: see `rateLimitKeyOf`. */
  | { readonly type: 'rate_limit'; readonly rate: string; readonly burst?: number; readonly key?: string }

/** What requests share a budget: those of a client address, of a value of a header (without it, of an address), or all. */
export type RateLimitKey =
  | { readonly by: 'address' }
  | { readonly by: 'header'; readonly name: string }
  | { readonly by: 'all' }

const addressKeys: readonly (string | undefined)[] = [
  undefined,
  'client_ip',
  '{client_ip}',
  '{remote_host}',
  '{http.request.remote.host}',
  '{http.vars.client_ip}'
]

/** Reads `key` of `rate_limit`: `client_ip`, `header.<name>` or `all`, and the words of Caddy for the first two. Undefined for anything else. */
export function rateLimitKeyOf(key: string | undefined): RateLimitKey | undefined {
  if (addressKeys.includes(key)) return { by: 'address' }
  if (key === 'all') return { by: 'all' }
  const bare = /^\{(?:http\.request\.)?(header\.[^{}]*)\}$/.exec(key ?? '')?.[1] ?? key ?? ''
  const name = /^header\.([A-Za-z0-9!#$%&'*+.^_`|~-]{1,100})$/.exec(bare)?.[1]
  return name === undefined ? undefined : { by: 'header', name }
}

/** How a hostname is served. All routes of one hostname have the same. */
export type RouteTls =
  | { readonly mode: 'off' }
  | { readonly mode: 'automatic' }
  | { readonly mode: 'custom'; readonly certificateId: string }

/** The platform's own hostname, served by the proxy with the platform behind it; session cookies pass. */
export interface PlatformRoute {
  readonly hostname: string
  readonly forceHttps: boolean
  readonly tls: RouteTls
  /** Where the platform listens, as the proxy reaches it. */
  readonly upstream: { readonly host: string; readonly port: number }
}

/** One rule: requests for a hostname, below a path, go to an application. */
export interface ProxyRoute {
  /** Unique in a table. */
  readonly id: string
  /** In lower case, of ASCII; `*.example.com` is every host directly below that name which has no route of its own. */
  readonly hostname: string
  /** `/`, or a path without a slash at its end: it itself and all that is below. */
  readonly path: string
  readonly applicationId: string
  /** Null: the port that the application was deployed with. */
  readonly containerPort: number | null
  /** Leaves `path` out of what the application is asked for. */
  readonly stripPath: boolean
  /** Put in front of what is left; empty: nothing. */
  readonly internalPath: string
  /** Plain HTTP is answered with 301 to the same address over TLS. */
  readonly forceHttps: boolean
  readonly tls: RouteTls
  readonly features: readonly RouteFeature[]
  /** Handlers of the driver's own kind, in order. */
  readonly handlers: readonly object[]
}

/**
 * All that is to be served. A deploy changes nothing in it: where an application's requests go is told beside it. Routes are in the
 * order in which they are to be looked at: exact hostnames before wildcards, then longer paths before shorter ones.
 */
export interface RoutingTable {
  readonly routes: readonly ProxyRoute[]
  /** Those that `custom` routes name; one that cannot be decrypted is missing. */
  readonly certificates: readonly ServedCertificate[]
  /** Null: the platform has no hostname of its own here. No route has this name. */
  readonly platform: PlatformRoute | null
  /** Addresses of proxies in front whose `X-Forwarded-For` is believed, as ranges: `10.0.0.0/8`. */
  readonly trustedProxies: readonly string[]
}

/** Where the requests of one application go, by the `containerPort` of routes; null is always among them. */
export type ApplicationTargets = ReadonlyMap<number | null, TrafficTarget>

/** How a hostname is served now, as far as the driver knows. */
export interface HostReport {
  /** Null where it is served; otherwise a sentence without a full stop that says why not, with what helps. */
  readonly fault: string | null
  /** Where to ask for its certificate with the hostname as SNI; null where it is not served over TLS. */
  readonly tlsAt: { readonly host: string; readonly port: number } | null
  /** Why there is no certificate: the first error of the authority; null where none is known. */
  readonly tlsFault: string | null
  /** True: an authority of the proxy's own, which no browser trusts, issues on purpose (local development). */
  readonly localAuthority?: boolean
}

/** What the comparison of what a proxy serves with what it should serve has done. Counts are of the newest run; times in RFC 3339. */
export interface ReconcilerStatus {
  readonly intervalSeconds: number
  readonly lastRunAt: string | null
  readonly lastDurationMs: number
  readonly lastAdded: number
  readonly lastUpdated: number
  readonly lastRemoved: number
  /** Why the newest run failed; null where it did not. */
  readonly lastError: string | null
  readonly runCount: number
  /** Differences found and repaired since the driver came. */
  readonly totalDrift: number
}

/**
 * Leads requests for hostnames to applications. One is in charge at a time: one that is no `fallback`, by its key, before one that is.
 *
 * A driver strips the platform's session cookies from every request, and keeps applications from setting them; answers requests for a
 * stopped application with 503 and a plain sentence, and those for a hostname without a route with a plain 404. Where a
 * route needs an ability that it lacks, it does not serve it without. The contract tests beside this file say it all.
 */
export interface ProxyDriver {
  /** As people know it: `Caddy`. */
  readonly name: string
  readonly abilities: readonly ProxyAbility[]
  /** What an operator does to get what it lacks; a half-sentence: `enable …`. */
  readonly lackRemedy: string
  /** True: it gives way to any driver that is not. */
  readonly fallback?: true
  /** Serves this table and no other from the moment this resolves. Calls come one after another. Rejects with the reason. */
  load(table: RoutingTable): Promise<void>
  /** Where the requests of an application go, beginning with the next one; null: it does not run. Known before its routes may be. */
  retarget(applicationId: string, targets: ApplicationTargets | null): Promise<void>
  /** The same at a deploy, telling what the switch does to the traffic. */
  switchTo(applicationId: string, targets: ApplicationTargets): Promise<TrafficSwitch | null>
  /** Another driver is in charge now. */
  release(): Promise<void>
  /** Of one hostname of the table. */
  report(hostname: string): Promise<HostReport>
  /** The ports by which browsers reach it; null where there is none. */
  ports(): { readonly http: number | null; readonly https: number | null }
  /** Of a proxy that is no part of this process, and so may serve something else than it was given. */
  readonly reconciler?: { status(): ReconcilerStatus; reconcile(): Promise<ReconcilerStatus> }
  /** Ends the proxy's process and starts it anew; rejects with the reason where the process is not the driver's. */
  restart?(): Promise<void>
  /** What is wrong with handlers of `advanced_config`, as a half-sentence; null where the driver can serve them. Asked when they are saved. */
  checkHandlers?(handlers: readonly object[]): Promise<string | null>
  /** The newest lines of the proxy's own log, at most `lines`. */
  logs?(lines: number): Promise<string>
}
export const proxyDrivers = extensionPoint<ProxyDriver>('domains.proxyDrivers')

/** Hostnames that no domain may have, because something else is asked by them; a half-sentence that says what, or null. */
export const reservedHostnames = extensionPoint<{ reserves(hostname: string): string | null }>(
  'domains.reservedHostnames'
)

/** What is served for a hostname has got worse, or better. */
export const domainTlsChanged = event<{
  readonly domainId: string
  readonly applicationId: string
  readonly hostname: string
  readonly status: string
  /** What is wrong, with what helps; null where nothing is known. */
  readonly reason: string | null
  /** RFC 3339; null where there is no certificate. */
  readonly notAfter: string | null
}>('domains.tlsChanged')

/** The routes of each hostname, the one with the longest path first. */
export interface HostTable {
  /** By the name itself, else by the wildcard directly above it; empty where nothing is served. */
  routesOf(hostname: string): readonly ProxyRoute[]
}

export function hostTableOf({ routes }: Pick<RoutingTable, 'routes'>): HostTable {
  const byName = new Map<string, ProxyRoute[]>()
  for (const route of routes) {
    const known = byName.get(route.hostname)
    if (known === undefined) byName.set(route.hostname, [route])
    else known.push(route)
  }
  for (const known of byName.values()) known.sort((a, b) => b.path.length - a.path.length)
  return {
    routesOf(hostname) {
      const exact = byName.get(hostname)
      if (exact !== undefined) return exact
      const dot = hostname.indexOf('.')
      return (dot < 1 ? undefined : byName.get(`*${hostname.slice(dot)}`)) ?? []
    }
  }
}

/** The path of a request target, without its query. */
export function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return end < 0 ? target : target.slice(0, end)
}

/**
 * The path of a request target as rules for paths see it, and as the server behind may: escapes of ASCII decoded, and one slash for
 * several. What has no meaning as an escape stays.
 */
export const ruledPath = (target: string): string =>
  pathOf(target)
    .replace(/%([0-7][0-9a-f])/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\/{2,}/g, '/')

/** Whether `path`, as `ruledPath` gives it, is at or below that of a route. */
export const isBelow = (rule: string, path: string): boolean =>
  rule === '/' || path === rule || (path.startsWith(rule) && path[rule.length] === '/')

/** Whose requests are, by the routing table as this process has it. */
export interface RouteDirectory {
  /**
   * Of each, in their order, the application that its hostname and path lead to; null where no route does. A hostname is in lower
   * case and without a port; a path may have a query.
   */
  applicationsOf(
    requests: ReadonlyArray<{ readonly hostname: string; readonly path: string }>
  ): Promise<ReadonlyArray<string | null>>
}
export const routeDirectory = service<RouteDirectory>('domains.routes')

/** By which address this server is reached. */
export interface PublicAddress {
  /** What is set, else what is found out; undefined where it is not known. */
  read(): Promise<string | undefined>
}
export const publicAddress = service<PublicAddress>('domains.public-address')
