import type { ProxyRoute } from 'busbar/api/domains'

/**
 * Whether a path leads out of where it begins, as a server may read it: by dots alone between slashes, percent-encoded and
 * backward ones included. A rule for a path says nothing of such a request.
 */
export const climbs = (path: string): boolean =>
  path
    .replace(/%2e/gi, '.')
    .split(/\/|\\|%2f|%5c/i)
    .some(segment => segment === '.' || segment === '..')

/** What the application is asked for, query included, by a request at or below the path of the route. */
export function forwardedTarget(
  { path, stripPath, internalPath }: Pick<ProxyRoute, 'path' | 'stripPath' | 'internalPath'>,
  target: string
): string {
  if (!target.startsWith('/')) return target
  const rest = stripPath && path !== '/' ? target.slice(lengthOf(path, target)) : target
  return internalPath + (rest.startsWith('/') ? rest : `/${rest}`)
}

/** How much of a target, as it is written, the path of its route takes up: characters may be escaped, and slashes repeated. */
function lengthOf(path: string, target: string): number {
  let at = 0
  for (const wanted of path) {
    at += widthAt(target, at)
    if (wanted !== '/') continue
    while (isSlashAt(target, at)) at += widthAt(target, at)
  }
  return at
}

const widthAt = (target: string, at: number): number => (target[at] === '%' ? 3 : 1)
const isSlashAt = (target: string, at: number): boolean =>
  target[at] === '/' || target.slice(at, at + 3).toLowerCase() === '%2f'
