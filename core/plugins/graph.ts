import semver from 'semver'
import type { Manifest } from './manifest.js'

export type GraphNode = Pick<Manifest, 'id' | 'version' | 'sdk' | 'requires' | 'optional'>

export interface Graph {
  /** Every node without a problem, each after all it requires or optionally uses. */
  readonly order: readonly string[]
  /** By id: all that is wrong with its dependencies, in one sentence. */
  readonly problems: ReadonlyMap<string, string>
}

/** Orders plugins by their dependencies and names every missing, out-of-range or circular one. */
export function resolveGraph(nodes: readonly GraphNode[], sdkVersion: string): Graph {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const faults = new Map<string, string[]>(nodes.map(node => [node.id, ownFaults(node, byId, sdkVersion)]))
  for (const cycle of walk(nodes).cycles) {
    for (const id of new Set(cycle))
      faults.get(id)?.push(`the dependencies form a cycle: ${cycle.join(' → ')}`)
  }
  const problems = new Map(
    [...faults].filter(([, list]) => list.length > 0).map(([id, list]) => [id, list.join('; ')])
  )
  return { order: walk(nodes.filter(({ id }) => !problems.has(id))).order, problems }
}

/** The plugins that need `id` to run, directly or through others, nearest first. */
export function dependentsOf(id: string, nodes: readonly GraphNode[]): string[] {
  const found = new Set<string>()
  const visit = (wanted: string): void => {
    for (const node of nodes) {
      if (!Object.hasOwn(node.requires, wanted) || found.has(node.id)) continue
      found.add(node.id)
      visit(node.id)
    }
  }
  visit(id)
  return [...found]
}

function ownFaults(node: GraphNode, byId: ReadonlyMap<string, GraphNode>, sdkVersion: string): string[] {
  const faults: string[] = []
  if (!semver.satisfies(sdkVersion, node.sdk))
    faults.push(`it was written for SDK ${node.sdk}, this is ${sdkVersion}`)
  for (const [id, range] of Object.entries(node.requires)) {
    const wanted = byId.get(id)
    if (wanted === undefined) faults.push(`it requires "${id}" ${range}, which is not installed`)
    else if (!semver.satisfies(wanted.version, range))
      faults.push(`it requires "${id}" ${range}, but ${wanted.version} is installed`)
  }
  for (const [id, range] of Object.entries(node.optional)) {
    const used = byId.get(id)
    if (used !== undefined && !semver.satisfies(used.version, range))
      faults.push(`it uses "${id}" ${range}, but ${used.version} is installed`)
  }
  return faults
}

/** Every node after all it requires or uses, but for the cycles, which are named. */
function walk(nodes: readonly GraphNode[]): { readonly order: string[]; readonly cycles: string[][] } {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean => {
    if (from === to) return true
    if (seen.has(from)) return false
    seen.add(from)
    return (uses.get(from) ?? []).some(next => reaches(next, to, seen))
  }
  const uses = new Map(nodes.map(({ id, requires }) => [id, Object.keys(requires)]))
  // One that it may do without makes no cycle: it is only not waited for.
  for (const { id, optional } of nodes)
    for (const used of Object.keys(optional)) if (!reaches(used, id)) uses.get(id)?.push(used)
  const done = new Set<string>()
  const path: string[] = []
  const cycles: string[][] = []
  const visit = (id: string): void => {
    const node = byId.get(id)
    if (node === undefined || done.has(id)) return
    const at = path.indexOf(id)
    if (at >= 0) {
      cycles.push([...path.slice(at), id])
      return
    }
    path.push(id)
    for (const next of uses.get(id) ?? []) visit(next)
    path.pop()
    done.add(id)
  }
  // By id, so that the same set of plugins always starts in the same order.
  for (const id of [...byId.keys()].sort()) visit(id)
  return { order: [...done], cycles }
}
