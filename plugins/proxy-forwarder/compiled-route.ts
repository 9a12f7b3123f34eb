import type { IncomingMessage } from 'node:http'
import { type HeaderChanges, type ProxyAbility, type ProxyRoute, pathOf } from 'busbar/api/domains'
import type { ForwardingLimits, Head, OwnAnswer, Refusal, Route, Switchable } from 'busbar/sdk/http1'
import { addressRanges } from './address-ranges.js'
import { climbs, forwardedTarget } from './forwarded-path.js'
import { changeHeaders } from './header-changes.js'

/** A route as requests meet it. */
export interface CompiledRoute {
  readonly path: string
  decide(head: Head, request: IncomingMessage): Route | OwnAnswer | Refusal
}

const forbidden: OwnAnswer = { status: 403, sentence: 'Forbidden' }
const unserved: OwnAnswer = {
  status: 503,
  sentence:
    'This hostname cannot be served the way it is set up: the proxy of this platform cannot do all that its rules ask for. Its owner sees what is missing.'
}

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
  { abilities, limits }: { readonly abilities: readonly ProxyAbility[]; readonly limits: ForwardingLimits }
): CompiledRoute {
  if (lackOf(route, abilities).length > 0) return { path: route.path, decide: () => unserved }
  const requestChanges: HeaderChanges[] = []
  const responseChanges: HeaderChanges[] = []
  const checks: Array<(path: string, request: IncomingMessage) => OwnAnswer | undefined> = []
  for (const feature of route.features) {
    if (feature.type === 'headers') {
      if (feature.request !== undefined) requestChanges.push(feature.request)
      if (feature.response !== undefined) responseChanges.push(feature.response)
    } else if (feature.type === 'ip_allowlist') {
      const isAllowed = addressRanges(feature.ranges)
      checks.push((_path, { socket }) => (isAllowed(socket.remoteAddress ?? '') ? undefined : forbidden))
    } else if (feature.type === 'redirect') {
      const { from, to, statusCode } = feature
      const answer: OwnAnswer = { status: statusCode, sentence: `Moved to ${to}`, headers: { Location: to } }
      checks.push(path => (path === from ? answer : undefined))
    }
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
  const isConfined = route.path !== '/' || route.internalPath !== ''
  return {
    path: route.path,
    decide(head, request) {
      const path = pathOf(head.path)
      if (isConfined && climbs(path)) return 'badTarget'
      for (const check of checks) {
        const answer = check(path, request)
        if (answer !== undefined) return answer
      }
      return forwarded
    }
  }
}
