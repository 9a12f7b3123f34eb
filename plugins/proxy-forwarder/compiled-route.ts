import type { HeaderChanges, ProxyAbility, ProxyRoute } from 'busbar/api/domains'
import {
  addressesIn,
  type Decision,
  type ForwardedOrigin,
  type ForwardingLimits,
  type OwnAnswer,
  type PasswordChecks,
  type Route,
  type Switchable
} from 'busbar/sdk/http1'
import { forwardedTarget } from './forwarded-path.js'
import { changeHeaders } from './header-changes.js'
import type { RateLimits } from './rate-limits.js'
import { type Check, firstAnswer, type Visit } from './visit.js'

/** A route as requests meet it. */
export interface CompiledRoute {
  readonly path: string
  /** `origin`: as a proxy in front has told it, where there is one. */
  decide(visit: Visit, origin: ForwardedOrigin | undefined): Decision | Promise<Decision>
}

interface RouteContext {
  readonly abilities: readonly ProxyAbility[]
  readonly limits: ForwardingLimits
  readonly rates: RateLimits
  readonly passwords: PasswordChecks
}

const forbidden: OwnAnswer = { status: 403, sentence: 'Forbidden' }
const unserved: OwnAnswer = {
  status: 503,
  sentence:
    'This hostname cannot be served the way it is set up: the proxy of this platform cannot do all that its rules ask for. Its owner sees what is missing.'
}

/** Its rule is for a part of what its hostname, or its application, has. */
export const isConfined = ({ path, internalPath }: ProxyRoute): boolean => path !== '/' || internalPath !== ''

/** What a route asks for that is not among `abilities`; it is not served without. */
export function lackOf(route: ProxyRoute, abilities: readonly ProxyAbility[]): readonly ProxyAbility[] {
  const wanted: ProxyAbility[] = [
    ...(route.tls.mode === 'off' ? [] : ['tls' as const]),
    ...route.features.map(({ type }) => type),
    ...(route.handlers.length === 0 ? [] : ['advanced_config' as const])
  ]
  return wanted.filter(ability => !abilities.includes(ability))
}

export function compileRoute(
  route: ProxyRoute,
  container: Switchable,
  { abilities, limits, rates, passwords }: RouteContext
): CompiledRoute {
  if (lackOf(route, abilities).length > 0) return { path: route.path, decide: () => unserved }
  const requestChanges: HeaderChanges[] = []
  const responseChanges: HeaderChanges[] = []
  const checks: Check[] = []
  for (const feature of route.features) {
    if (feature.type === 'headers') {
      if (feature.request !== undefined) requestChanges.push(feature.request)
      if (feature.response !== undefined) responseChanges.push(feature.response)
    } else if (feature.type === 'ip_allowlist') {
      const isAllowed = addressesIn(feature.ranges)
      checks.push(({ address }) => (isAllowed?.(address) === true ? undefined : forbidden))
    } else if (feature.type === 'redirect') {
      const { from, to, statusCode } = feature
      const answer: OwnAnswer = { status: statusCode, sentence: `Moved to ${to}`, headers: { Location: to } }
      checks.push(({ path }) => (path === from ? answer : undefined))
    } else if (feature.type === 'rate_limit') checks.push(rates.check(route.id, feature))
    else checks.push(passwords.check(route.id, feature))
  }
  const forwarded: Route = {
    ownHost: undefined,
    current: container.current,
    meter: container.meter,
    limits,
    rewrite: {
      path: target => forwardedTarget(route, target),
      request: headers => {
        for (const changes of requestChanges) changeHeaders(headers, changes)
      },
      response: headers => {
        for (const changes of responseChanges) changeHeaders(headers, changes)
      }
    }
  }
  return {
    path: route.path,
    decide(visit, origin) {
      const onward = origin === undefined ? forwarded : { ...forwarded, origin }
      const answer = firstAnswer(checks, visit)
      return answer instanceof Promise ? answer.then(own => own ?? onward) : (answer ?? onward)
    }
  }
}
