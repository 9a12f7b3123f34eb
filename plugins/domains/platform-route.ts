import { MisconfiguredError } from 'busbar/sdk'
import type { PlatformRoute, RouteTls } from './api.js'
import type { Settings } from './settings.js'

/** Of the settings, what concerns the platform's own hostname. */
type DashboardSettings = Pick<
  Settings,
  'dashboard_domain' | 'dashboard_ssl_mode' | 'dashboard_certificate_id' | 'dashboard_upstream'
>

interface RouteContext {
  /** Where the platform listens; null before it does. */
  readonly listening: PlatformRoute['upstream'] | null
  /** Whether the driver has certificates issued. */
  readonly issues: boolean
}

/** How the platform itself is to be served by the proxy; null where it has no hostname of its own, or does not listen yet. */
export function platformRouteOf(settings: DashboardSettings, context: RouteContext): PlatformRoute | null {
  const { dashboard_domain: hostname, dashboard_upstream: upstream = context.listening } = settings
  if (hostname === undefined || upstream === null) return null
  const tls = dashboardTls(settings, context)
  return { hostname, forceHttps: tls.mode !== 'off', tls, upstream }
}

/** As a domain for which nothing was said: automatic where that can be had. */
function dashboardTls(
  { dashboard_ssl_mode: mode, dashboard_certificate_id: certificateId }: DashboardSettings,
  { issues }: Pick<RouteContext, 'issues'>
): RouteTls {
  const chosen = mode ?? (issues ? 'automatic' : 'off')
  return chosen === 'custom' ? { mode: 'custom', certificateId: certificateId ?? '' } : { mode: chosen }
}

/** Throws where the settings cannot be meant together. */
export function checkDashboard(settings: DashboardSettings): void {
  const { dashboard_domain: domain, dashboard_ssl_mode: mode, dashboard_certificate_id: id } = settings
  if (domain !== undefined && mode === 'custom' && id === undefined)
    throw new MisconfiguredError(
      'DASHBOARD_SSL_MODE is "custom", and DASHBOARD_CERTIFICATE_ID is not set: set it to the id of a certificate of GET /api/certificates, or use automatic or off'
    )
}
