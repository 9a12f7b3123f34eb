import type { ServedCertificate } from 'busbar/api/certificates'
import type { PlatformRoute, ProxyAbility, ProxyRoute, RouteFeature, RouteTls, RoutingTable } from './api.js'
import type { DomainRow, FeatureRow } from './domain-store.js'
import { isWildcard } from './hostname.js'
import { isFeatureType, readFeature } from './route-features.js'
import type { OwnHost } from './routing-store.js'

interface Wanted {
  readonly domains: readonly DomainRow[]
  readonly features: readonly FeatureRow[]
  readonly ownHosts: readonly OwnHost[]
  readonly certificates: readonly ServedCertificate[]
  readonly platform: PlatformRoute | null
  readonly trustedProxies: readonly string[]
}

/** What is to be served, as one value: by nothing but what is stored. */
export function routingTableOf({
  domains,
  features,
  ownHosts,
  certificates,
  platform,
  trustedProxies
}: Wanted): RoutingTable {
  const byDomain = new Map<string, FeatureRow[]>()
  for (const feature of features) {
    const known = byDomain.get(feature.domain_id)
    if (known === undefined) byDomain.set(feature.domain_id, [feature])
    else known.push(feature)
  }
  const routes = [
    ...domains.map(domain => routeOf(domain, byDomain.get(domain.id) ?? [])),
    ...ownHosts.map(ownRoute)
  ]
  // A domain of before the platform got its name.
  const others = routes.filter(({ hostname }) => hostname !== platform?.hostname)
  return { routes: others.toSorted(inOrder), certificates, platform, trustedProxies }
}

/** Exact names before wildcards, longer paths before shorter ones; the rest makes the order total. */
function inOrder(a: ProxyRoute, b: ProxyRoute): number {
  return (
    Number(isWildcard(a.hostname)) - Number(isWildcard(b.hostname)) ||
    compare(a.hostname, b.hostname) ||
    b.path.length - a.path.length ||
    compare(a.path, b.path) ||
    compare(a.id, b.id)
  )
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function routeOf(row: DomainRow, features: readonly FeatureRow[]): ProxyRoute {
  return {
    id: row.id,
    hostname: row.hostname,
    path: row.path,
    applicationId: row.application_id,
    containerPort: row.container_port,
    stripPath: row.strip_path,
    internalPath: row.internal_path,
    forceHttps: row.force_https,
    tls: tlsOf(row),
    features: features.map(({ feature_type, config }) => {
      const feature = isFeatureType(feature_type) ? readFeature(feature_type, config) : { fault: 'unknown' }
      return 'fault' in feature ? closed : feature
    }),
    handlers: row.advanced_config ?? []
  }
}

/** In place of what was saved by other rules than those of today: a route is not served without what was to protect it. */
const closed: RouteFeature = Object.freeze({ type: 'ip_allowlist', ranges: [] })

const tlsOf = ({ ssl_mode, certificate_id }: DomainRow): RouteTls =>
  ssl_mode === 'custom' && certificate_id !== null
    ? { mode: 'custom', certificateId: certificate_id }
    : ssl_mode === 'automatic'
      ? { mode: 'automatic' }
      : { mode: 'off' }

const ownRoute = ({ hostname, application_id }: OwnHost): ProxyRoute => ({
  id: `own:${application_id}`,
  hostname,
  path: '/',
  applicationId: application_id,
  containerPort: null,
  stripPath: false,
  internalPath: '',
  forceHttps: false,
  tls: { mode: 'off' },
  features: [],
  handlers: []
})

/** What a driver has to be able to do to serve a route, each with the field that asks for it. */
export function abilitiesFor(route: Pick<ProxyRoute, 'tls' | 'features' | 'handlers'>): ReadonlyArray<{
  readonly ability: ProxyAbility
  readonly field: string
}> {
  return [
    ...(route.tls.mode === 'off' ? [] : [{ ability: 'tls' as const, field: 'ssl_mode' }]),
    ...(route.tls.mode === 'automatic' ? [{ ability: 'acme' as const, field: 'ssl_mode' }] : []),
    ...route.features.map((feature: RouteFeature) => ({ ability: feature.type, field: 'feature_type' })),
    ...(route.handlers.length === 0
      ? []
      : [{ ability: 'advanced_config' as const, field: 'advanced_config' }])
  ]
}

const words: Readonly<Record<ProxyAbility, string>> = {
  tls: 'TLS',
  acme: 'automatic certificates',
  basic_auth: 'basic_auth',
  headers: 'headers',
  ip_allowlist: 'ip_allowlist',
  redirect: 'redirect',
  rate_limit: 'rate_limit',
  advanced_config: 'advanced_config'
}
export const inWords = (ability: ProxyAbility): string => words[ability]
