import type { PlatformRoute } from 'busbar/api/domains'
import type {
  Decision,
  ForwardedOrigin,
  ForwardingLimits,
  HeaderBag,
  OwnAnswer,
  Switchable
} from 'busbar/sdk/http1'
import { changeHeaders } from './header-changes.js'
import type { Visit } from './visit.js'

/** The hostname of the platform itself as requests meet it. */
export interface CompiledPlatform {
  readonly hostname: string
  /** Why it is not served; null where it is. */
  readonly fault: string | null
  decide(visit: Visit, origin: ForwardedOrigin | undefined): Decision
}

const unserved: OwnAnswer = {
  status: 503,
  sentence:
    'The platform is to be served by this name over TLS, which the built-in proxy cannot do. Its operator sees what helps.'
}
const fault =
  'It is answered with 503, because the built-in forwarder cannot do TLS: set DASHBOARD_SSL_MODE=off, or have the platform serve it by a proxy that can, such as Caddy, by a plugin that drives it'

interface PlatformContext {
  readonly limits: ForwardingLimits
  /** By which the platform knows that its own proxy asks. */
  readonly shows: { readonly header: string; readonly value: string }
}

/** `target` leads to the platform. */
export function compilePlatform(
  { hostname, tls }: PlatformRoute,
  target: Switchable,
  { limits, shows }: PlatformContext
): CompiledPlatform {
  if (tls.mode !== 'off') return { hostname, fault, decide: () => unserved }
  const route = {
    ownHost: undefined,
    current: target.current,
    meter: target.meter,
    limits,
    rewrite: {
      path: (path: string) => path,
      request: (headers: HeaderBag) => changeHeaders(headers, { set: { [shows.header]: [shows.value] } }),
      response: () => {}
    },
    isPlatform: true
  } as const
  return {
    hostname,
    fault: null,
    decide: (_visit, origin) => (origin === undefined ? route : { ...route, origin })
  }
}
