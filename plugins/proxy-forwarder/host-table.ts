import type { ProxyRoute, RoutingTable } from 'busbar/api/domains'

/** The routes of each hostname, the one with the longest path first. */
export interface HostTable {
  /** By the name itself, else by the wildcard directly above it; empty where nothing is served. */
  routesOf(hostname: string): readonly ProxyRoute[]
}

export function hostTableOf({ routes }: RoutingTable): HostTable {
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
 * Whether a path leads out of where it begins, as a server may read it: by dots alone between slashes, percent-encoded and
 * backward ones included. A rule for a path says nothing of such a request.
 */
export const climbs = (path: string): boolean =>
  path
    .replace(/%2e/gi, '.')
    .split(/\/|\\|%2f|%5c/i)
    .some(segment => segment === '.' || segment === '..')

/** Whether `path` is at or below that of a route. */
export const isBelow = (rule: string, path: string): boolean =>
  rule === '/' || path === rule || (path.startsWith(rule) && path[rule.length] === '/')

/** What the application is asked for, query included, by a request at or below the path of the route. */
export function forwardedTarget(
  { path, stripPath, internalPath }: Pick<ProxyRoute, 'path' | 'stripPath' | 'internalPath'>,
  target: string
): string {
  if (!target.startsWith('/')) return target
  const rest = stripPath && path !== '/' ? target.slice(path.length) : target
  return internalPath + (rest.startsWith('/') ? rest : `/${rest}`)
}
