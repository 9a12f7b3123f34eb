import type { Clock } from 'busbar/sdk'
import semver from 'semver'
import { sdkVersion } from '../release.js'
import { type Discovered, discover, type PluginRoot } from './discovery.js'
import { dependentsOf, type Graph, resolveGraph } from './graph.js'
import type { Manifest } from './manifest.js'
import {
  isEssential,
  type Loaded,
  manifestOf,
  offeredManifest,
  type PluginEntry,
  type PluginStateName,
  setState
} from './plugin-entry.js'
import { schemaOf } from './plugin-schema.js'
import type { PluginChoice, PluginStore } from './plugin-store.js'
import { pluginProblems } from './problems.js'

export interface CatalogOptions {
  readonly roots: readonly PluginRoot[]
  /** Plugins given as values instead of folders: tests. */
  readonly inline: ReadonlyArray<{ readonly manifest: Manifest; readonly definition: Loaded['definition'] }>
  readonly store: PluginStore
  readonly clock: Clock
}

/** What is installed, what of it is wanted, and in which order it depends on each other. */
export class PluginCatalog {
  readonly entries = new Map<string, PluginEntry>()
  choices: ReadonlyMap<string, PluginChoice> = new Map()
  #graph: Graph = { order: [], problems: new Map() }

  constructor(readonly options: CatalogOptions) {}

  /** Ids of all plugins whose dependencies are sound, each after what it needs. */
  get order(): readonly string[] {
    return this.#graph.order
  }

  /** All of them, each after what it needs; those whose dependencies are not sound come last. */
  get inOrder(): readonly PluginEntry[] {
    return [...new Set([...this.order.map(id => this.known(id)), ...this.entries.values()])]
  }

  /**
   * The plugin that owns a database schema, where it is off, behind those it requires that are off too, each after what
   * it needs; none where one of them is in quarantine.
   */
  offWithin(schema: string): PluginEntry[] {
    const owner = this.inOrder.find(({ id, discovered }) => schemaOf(id, discovered.builtIn) === schema)
    if (owner === undefined) return []
    const wanted = new Set<string>()
    const want = (id: string): void => {
      const entry = this.entries.get(id)
      if (entry === undefined || entry.run !== undefined || wanted.has(id)) return
      wanted.add(id)
      for (const need of Object.keys(manifestOf(entry)?.requires ?? {})) want(need)
    }
    want(owner.id)
    // One that may have ended the process is started by an operator, or not at all.
    const isFit = ![...wanted].some(id => (this.choices.get(id)?.quarantined ?? null) !== null)
    return isFit ? this.inOrder.filter(({ id }) => wanted.has(id)) : []
  }

  /** Of what it uses, what starts before it: two that may use each other are in one order all the same. */
  usedBefore(id: string, uses: readonly string[]): readonly string[] {
    const place = this.order.indexOf(id)
    return uses.filter(used => this.order.indexOf(used) < place)
  }

  /** Reads the folders again: plugins that came are added, those that went and do not run are dropped. */
  async discover(): Promise<void> {
    const { roots, inline } = this.options
    const given = inline.map(
      ({ manifest }): Discovered => ({ id: manifest.id, directory: '', builtIn: true, manifest })
    )
    const found = [...(await discover(roots)), ...given]
    for (const discovered of found) {
      const { id } = discovered
      const known = this.entries.get(id)
      if (known !== undefined) {
        known.discovered = discovered
        continue
      }
      const state = { name: 'installed' as const, reason: null, since: this.options.clock.now() }
      this.entries.set(id, { id, discovered, state, loaded: undefined, run: undefined, failures: 0 })
    }
    const ids = new Set(found.map(({ id }) => id))
    for (const { id, run } of this.entries.values())
      if (run === undefined && !ids.has(id)) this.entries.delete(id)
    this.refreshGraph()
    for (const entry of this.entries.values()) this.describeIdle(entry)
  }

  /** Puts what runs, and what would, in order again. */
  refreshGraph(): void {
    this.#graph = resolveGraph(this.#nodes(), sdkVersion)
  }

  /** Why the version that is in the folder must not take the place of the one that runs; null when it may. */
  problemOfReload(entry: PluginEntry): string | null {
    const offered = offeredManifest(entry)
    if (offered === undefined) return 'its plugin.json is gone'
    const { problems } = resolveGraph(
      this.#nodes().map(node => (node.id === entry.id ? offered : node)),
      sdkVersion
    )
    const own = problems.get(entry.id) ?? this.#missing(offered)
    if (own !== null && own !== undefined) return own
    const [broken] = [...this.entries.values()].filter(
      ({ id, run }) => run !== undefined && problems.has(id) && !this.#graph.problems.has(id)
    )
    return broken === undefined
      ? null
      : `"${broken.id}" would not run beside it: ${problems.get(broken.id) ?? ''}`
  }

  async readChoices(): Promise<void> {
    this.choices = await this.options.store.all()
    this.refreshGraph()
  }

  async choose(...choice: Parameters<PluginStore['change']>): Promise<void> {
    await this.options.store.change(...choice)
    await this.readChoices()
  }

  /** Turns a plugin off together with others, and remembers which those are. */
  async chooseOff(id: string, along: readonly string[]): Promise<void> {
    await this.options.store.turnOff(id, along)
    await this.readChoices()
  }

  /** What was turned off because this one was, and is still there: each after what it needs. */
  disabledBy(id: string): string[] {
    return this.order.filter(other => this.choices.get(other)?.off_with === id)
  }

  known(id: string): PluginEntry {
    const entry = this.entries.get(id)
    if (entry === undefined) throw pluginProblems.unknown({ id })
    return entry
  }

  /** Built-in plugins are on unless turned off; others are off until an operator has turned them on. */
  isWanted(entry: PluginEntry): boolean {
    if (isEssential(entry)) return true
    const choice = this.choices.get(entry.id)
    return choice === undefined
      ? entry.discovered.builtIn
      : choice.desired === 'on' && choice.quarantined === null
  }

  /** Plugins whose start took the process down stay off until an operator turns them on again; with the reason of each. */
  async quarantine(reasons: ReadonlyMap<string, string>): Promise<void> {
    for (const [id, quarantined] of reasons) {
      const entry = this.entries.get(id)
      if (entry === undefined || isEssential(entry)) continue
      await this.choose([id], {
        desired: this.choices.get(id)?.desired ?? 'on',
        quarantined
      })
    }
  }

  dependents(id: string): string[] {
    return dependentsOf(id, this.#nodes())
  }

  /** Which of the plugins it needs do not run, in words; null when all do. */
  missing(entry: PluginEntry): string | null {
    return this.#missing(manifestOf(entry))
  }

  #missing(manifest: Manifest | undefined): string | null {
    const needs = Object.keys(manifest?.requires ?? {})
    const down = needs.filter(id => this.entries.get(id)?.run === undefined)
    return down.length === 0
      ? null
      : `it needs ${down.map(id => `"${id}", which is ${this.entries.get(id)?.state.name ?? 'not installed'}`).join(', ')}`
  }

  /** States why a plugin that is not running is not, when nothing went wrong with it. */
  describeIdle(entry: PluginEntry): void {
    const standing = entry.run === undefined ? this.#idleStanding(entry) : null
    if (standing !== null) setState(entry, ...standing, this.options.clock.now())
  }

  #idleStanding(entry: PluginEntry): [name: PluginStateName, reason: string] | null {
    const choice = this.choices.get(entry.id)
    if ('fault' in entry.discovered) return ['failed', entry.discovered.fault]
    if (choice?.quarantined != null) return ['quarantined', choice.quarantined]
    if (!this.isWanted(entry))
      return choice === undefined ? ['installed', 'not turned on yet'] : ['stopped', 'turned off']
    const problem =
      this.#graph.problems.get(entry.id) ?? (entry.loaded === undefined ? null : this.missing(entry))
    return problem === null ? null : ['blocked', problem]
  }

  /** Those that run and may use this plugin, but not its version: with it on they could not. */
  unfitFor(entry: PluginEntry): string[] {
    const { id } = entry
    const version = offeredManifest(entry)?.version
    return [...this.entries.values()].flatMap(user => {
      const range = manifestOf(user)?.optional[id]
      return user.run === undefined ||
        version === undefined ||
        range === undefined ||
        semver.satisfies(version, range)
        ? []
        : [`"${user.id}", which uses it in ${range} (this is ${version})`]
    })
  }

  #nodes(): Manifest[] {
    const all = [...this.entries.values()]
    // A plugin that was never turned on is not used by another one.
    const isThere = (id: string): boolean => {
      const entry = this.entries.get(id)
      return entry !== undefined && (entry.run !== undefined || this.isWanted(entry))
    }
    return all
      .map(manifestOf)
      .filter(manifest => manifest !== undefined)
      .map(manifest => ({
        ...manifest,
        optional: Object.fromEntries(Object.entries(manifest.optional).filter(([id]) => isThere(id)))
      }))
  }
}
