import { canonical, type JsonObject, objectAt } from './config/json.js'

/** How what is loaded differs from what is wanted, by routes; everything else counts as one. */
interface Drift {
  readonly added: number
  readonly updated: number
  readonly removed: number
}

export const noDrift: Drift = Object.freeze({ added: 0, updated: 0, removed: 0 })

export function driftOf(loaded: unknown, wanted: JsonObject, server: string): Drift {
  if (canonical(loaded) === canonical(wanted)) return noDrift
  const [before, after] = [partsOf(loaded, server), partsOf(wanted, server)]
  let [added, updated, removed] = [0, 0, 0]
  for (const [id, text] of after) {
    const former = before.get(id)
    if (former === undefined) added++
    else if (former !== text) updated++
  }
  for (const id of before.keys()) if (!after.has(id)) removed++
  // The order alone, or what has no name, differs.
  return added + updated + removed === 0 ? { added, updated: 1, removed } : { added, updated, removed }
}

/** Routes by their ids; those without one, and all that is no route, together. */
function partsOf(config: unknown, server: string): ReadonlyMap<string, string> {
  const parts = new Map<string, string>()
  const routes = objectAt(config, 'apps', 'http', 'servers', server)?.routes
  const nameless: unknown[] = []
  for (const route of Array.isArray(routes) ? routes : []) {
    const id = objectAt(route)?.['@id']
    if (typeof id === 'string') parts.set(id, canonical(route))
    else nameless.push(route)
  }
  const rest = structuredClone(config) as {
    apps?: { http?: { servers?: Record<string, { routes?: unknown }> } }
  }
  const own = objectAt(rest, 'apps', 'http', 'servers', server) as { routes?: unknown } | undefined
  if (own !== undefined) own.routes = nameless
  if (rest !== null && rest !== undefined) parts.set('', canonical(rest))
  return parts
}
