import semver from 'semver'
import type { Manifest } from './manifest.js'
import { type Offers, providerOf } from './offers.js'

export type GraphNode = Pick<Manifest, 'id' | 'version' | 'sdk' | 'requires' | 'optional' | 'implements'> & {
  /** Contracts that it implements without the consent of an operator; they are not among `implements`. */
  readonly unconsented?: readonly string[]
}

export interface Graph {
  /** Every node without a problem, each after all it requires or optionally uses. */
  readonly order: readonly string[]
  /** By id: all that is wrong with its dependencies, in one sentence. */
  readonly problems: ReadonlyMap<string, string>
}

/** Orders plugins by their dependencies and names every missing, out-of-range or circular one. */
export function resolveGraph(nodes: readonly GraphNode[], offers: Offers, sdkVersion: string): Graph {
  const faults = new Map<string, string[]>(nodes.map(node => [node.id, ownFaults(node, offers, sdkVersion)]))
  for (const cycle of walk(nodes, offers).cycles) {
    for (const id of new Set(cycle))
      faults.get(id)?.push(`the dependencies form a cycle: ${cycle.join(' → ')}`)
  }
  const problems = new Map(
    [...faults].filter(([, list]) => list.length > 0).map(([id, list]) => [id, list.join('; ')])
  )
  const sound = nodes.filter(({ id }) => !problems.has(id))
  return { order: walk(sound, offers).order, problems }
}

/** The plugins that need the plugin `id` to run, directly or through others, nearest first. */
export function dependentsOf(id: string, nodes: readonly GraphNode[], offers: Offers): string[] {
  const found = new Set<string>()
  const visit = (wanted: string): void => {
    for (const node of nodes) {
      const needs = Object.keys(node.requires).map(need => providerOf(need, offers))
      if (!needs.includes(wanted) || found.has(node.id)) continue
      found.add(node.id)
      visit(node.id)
    }
  }
  visit(id)
  return [...found]
}

function ownFaults(node: GraphNode, offers: Offers, sdkVersion: string): string[] {
  const faults: string[] = []
  if (!semver.satisfies(sdkVersion, node.sdk))
    faults.push(`it was written for SDK ${node.sdk}, this is ${sdkVersion}`)
  for (const [id, range] of Object.entries(node.requires)) {
    const wanted = offers.get(id)
    if (wanted === undefined) faults.push(`it requires "${id}" ${range}, which is not installed`)
    else if (!semver.satisfies(wanted.version, range))
      faults.push(`it requires "${id}" ${range}, but ${wanted.version} is installed`)
    else if (wanted.providers.length === 0)
      faults.push(`it requires "${id}" ${range}, which no installed plugin implements`)
  }
  for (const [id, range] of Object.entries(node.optional)) {
    const used = offers.get(id)
    if (used !== undefined && !semver.satisfies(used.version, range))
      faults.push(`it uses "${id}" ${range}, but ${used.version} is installed`)
  }
  for (const id of node.unconsented ?? [])
    faults.push(
      `it implements "${id}", which is not granted yet; disable it and enable it again to grant that`
    )
  for (const [id, range] of Object.entries(node.implements)) {
    const offer = offers.get(id)
    if (offer?.isContract !== true)
      faults.push(`it implements "${id}" ${range}, and there is no such contract`)
    else if (!semver.satisfies(offer.version, range))
      faults.push(`it implements "${id}" ${range}, but ${offer.version} is installed`)
    else if (offer.providers[0] !== node.id)
      faults.push(
        `"${offer.providers[0]}" implements "${id}" too, and one plugin may at a time: turn one of them off`
      )
  }
  return faults
}

/** Every node after all it requires or uses, but for the cycles, which are named. */
function walk(
  nodes: readonly GraphNode[],
  offers: Offers
): { readonly order: string[]; readonly cycles: string[][] } {
  const byId = new Map(nodes.map(node => [node.id, node]))
  const reaches = (from: string, to: string, seen = new Set<string>()): boolean => {
    if (from === to) return true
    if (seen.has(from)) return false
    seen.add(from)
    return (uses.get(from) ?? []).some(next => reaches(next, to, seen))
  }
  const providers = (ranges: object) => Object.keys(ranges).map(id => providerOf(id, offers))
  const uses = new Map(nodes.map(({ id, requires }) => [id, providers(requires)]))
  // One that it may do without makes no cycle: it is only not waited for.
  for (const { id, optional } of nodes)
    for (const used of providers(optional)) if (!reaches(used, id)) uses.get(id)?.push(used)
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
