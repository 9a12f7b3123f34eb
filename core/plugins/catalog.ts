import type { Clock } from 'busbar/sdk'
import { sdkVersion } from '../release.js'
import { discover, type Discovered, type PluginRoot } from './discovery.js'
import { dependentsOf, resolveGraph, type Graph } from './graph.js'
import type { Manifest } from './manifest.js'
import { isEssential, manifestOf, setState, type Loaded, type PluginEntry, type PluginStateName } from './plugin-entry.js'
import type { PluginChoice, PluginStore } from './plugin-store.js'
import { pluginProblems } from './problems.js'

export interface CatalogOptions {
  readonly roots: readonly PluginRoot[]
  /** Plugins given as values instead of folders: tests. */
  readonly inline: ReadonlyArray<{ readonly manifest: Manifest, readonly definition: Loaded['definition'] }>
  readonly store: PluginStore
  readonly clock: Clock
}

/** What is installed, what of it is wanted, and in which order it depends on each other. */
export class PluginCatalog {
  readonly entries = new Map<string, PluginEntry>()
  choices: ReadonlyMap<string, PluginChoice> = new Map()
  #graph: Graph = { order: [], problems: new Map() }

  constructor (readonly options: CatalogOptions) {}

  /** Ids of all plugins whose dependencies are sound, each after what it needs. */
  get order (): readonly string[] { return this.#graph.order }

  /** Reads the folders again: plugins that came are added, those that went and do not run are dropped. */
  async discover (): Promise<void> {
    const { roots, inline } = this.options
    const given = inline.map(({ manifest }): Discovered => ({ id: manifest.id, directory: '', builtIn: true, manifest }))
    const found = [...await discover(roots), ...given]
    for (const discovered of found) {
      const { id } = discovered
      const known = this.entries.get(id)
      if (known !== undefined) { known.discovered = discovered; continue }
      const state = { name: 'installed' as const, reason: null, since: this.options.clock.now() }
      this.entries.set(id, { id, discovered, state, loaded: undefined, run: undefined, failures: 0 })
    }
    const ids = new Set(found.map(({ id }) => id))
    for (const { id, run } of this.entries.values()) if (run === undefined && !ids.has(id)) this.entries.delete(id)
    this.#graph = resolveGraph(this.#nodes(), sdkVersion)
    for (const entry of this.entries.values()) this.describeIdle(entry)
  }

  async readChoices (): Promise<void> {
    this.choices = await this.options.store.all()
  }

  async choose (...choice: Parameters<PluginStore['change']>): Promise<void> {
    await this.options.store.change(...choice)
    await this.readChoices()
  }

  known (id: string): PluginEntry {
    const entry = this.entries.get(id)
    if (entry === undefined) throw pluginProblems.unknown({ id })
    return entry
  }

  /** Built-in plugins are on unless turned off; others are off until an operator has turned them on. */
  isWanted (entry: PluginEntry): boolean {
    if (isEssential(entry)) return true
    const choice = this.choices.get(entry.id)
    return choice === undefined ? entry.discovered.builtIn : choice.desired === 'on' && choice.quarantined === null
  }

  dependents (id: string): string[] {
    return dependentsOf(id, this.#nodes())
  }

  /** Which of the plugins it needs do not run, in words; null when all do. */
  missing (entry: PluginEntry): string | null {
    const needs = Object.keys(manifestOf(entry)?.requires ?? {})
    const down = needs.filter(id => this.entries.get(id)?.run === undefined)
    return down.length === 0 ? null : `it needs ${down.map(id => `"${id}", which is ${this.entries.get(id)?.state.name ?? 'not installed'}`).join(', ')}`
  }

  /** States why a plugin that is not running is not, when nothing went wrong with it. */
  describeIdle (entry: PluginEntry): void {
    const standing = entry.run === undefined ? this.#idleStanding(entry) : null
    if (standing !== null) setState(entry, ...standing, this.options.clock.now())
  }

  #idleStanding (entry: PluginEntry): [name: PluginStateName, reason: string] | null {
    const choice = this.choices.get(entry.id)
    if ('fault' in entry.discovered) return ['failed', entry.discovered.fault]
    if (choice?.quarantined != null) return ['quarantined', choice.quarantined]
    if (!this.isWanted(entry)) return choice === undefined ? ['installed', 'not turned on yet'] : ['stopped', 'turned off']
    const problem = this.#graph.problems.get(entry.id) ?? (entry.loaded === undefined ? null : this.missing(entry))
    return problem === null ? null : ['blocked', problem]
  }

  #nodes (): Manifest[] {
    return [...this.entries.values()].map(manifestOf).filter(manifest => manifest !== undefined)
  }
}
