import type { RoutingTable } from './api.js'

/** How two tables differ, in routes; the platform's own counts as one. */
export interface TableChanges {
  readonly added: number
  readonly updated: number
  readonly removed: number
}

export function tableChanges(before: RoutingTable | undefined, after: RoutingTable): TableChanges {
  const [old, wanted] = [routesOf(before), routesOf(after)]
  const kept = [...wanted].filter(([id]) => old.has(id))
  return {
    added: wanted.size - kept.length,
    updated: kept.filter(([id, route]) => old.get(id) !== route).length,
    removed: old.size - kept.length
  }
}

const routesOf = (table: RoutingTable | undefined): ReadonlyMap<string, string> =>
  new Map(
    table === undefined
      ? []
      : [
          ...table.routes.map(route => [route.id, JSON.stringify(route)] as const),
          ...(table.platform === null ? [] : [['platform', JSON.stringify(table.platform)] as const])
        ]
  )
