import { isDeepStrictEqual } from 'node:util'
import type { Clock } from 'busbar/sdk'
import semver from 'semver'
import { sdkVersion } from '../release.js'
import type { Contract } from './contract.js'
import { type Discovered, discover, type PluginRoot } from './discovery.js'
import { dependentsOf, type Graph, type GraphNode, resolveGraph } from './graph.js'
import { implementsGrant, type Manifest } from './manifest.js'
import { type Offers, offersOf, providerOf } from './offers.js'
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

type Node = Manifest & Pick<GraphNode, 'unconsented'>

/** What is installed, what of it is wanted, and in which order it depends on each other. */
export class PluginCatalog {
  readonly entries = new Map<string, PluginEntry>()
  choices: ReadonlyMap<string, PluginChoice> = new Map()
  #contracts: readonly Contract[] = []
  #offers: Offers = new Map()
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
      for (const need of this.needsOf(entry)) want(need)
    }
    want(owner.id)
    // One that may have ended the process is started by an operator, or not at all.
    const isFit = ![...wanted].some(id => (this.choices.get(id)?.quarantined ?? null) !== null)
    return isFit ? this.inOrder.filter(({ id }) => wanted.has(id)) : []
  }

  /** Ids of the plugins that must run for it: of what it requires, or of what provides the contracts that it requires. */
  needsOf(entry: PluginEntry): readonly string[] {
    return this.#providers(manifestOf(entry)?.requires)
  }

  /** Those that are wanted and loaded, and so is all they need: in dependency order. */
  startable(): PluginEntry[] {
    const found = new Set<string>()
    for (const id of this.order) {
      const entry = this.known(id)
      const needs = this.needsOf(entry)
      if (this.isWanted(entry) && entry.loaded !== undefined && needs.every(need => found.has(need)))
        found.add(id)
    }
    return [...found].map(id => this.known(id))
  }

  /** Ids of the plugins that it uses and that start before it: two that may use each other are in one order all the same. */
  usedBefore(entry: PluginEntry): readonly string[] {
    const place = this.order.indexOf(entry.id)
    const used = [...this.needsOf(entry), ...this.#providers(manifestOf(entry)?.optional)]
    return used.filter(id => this.order.indexOf(id) < place)
  }

  /**
   * Whether what it needs is there, and its start is to be tried when those have changed: one that has failed has tries of its
   * own, unless it is among them or uses one of them.
   */
  isDue(entry: PluginEntry, changed: readonly string[]): boolean {
    const isOwnTurn = [entry.id, ...this.usedBefore(entry)].some(id => changed.includes(id))
    return this.missing(entry) === null && (entry.failures === 0 || isOwnTurn)
  }

  #providers(ranges: object = {}): string[] {
    return Object.keys(ranges).map(id => providerOf(id, this.#offers))
  }

  /** Reads the folders again: plugins that came are added, those that went and do not run are dropped. */
  async discover(): Promise<void> {
    const { roots, inline } = this.options
    const given = inline.map(
      ({ manifest }): Discovered => ({ id: manifest.id, directory: '', builtIn: true, manifest })
    )
    const { plugins, contracts } = await discover(roots)
    this.#contracts = contracts
    const found = [...plugins, ...given]
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
    this.#offers = offersOf(this.#manifests(), this.#contracts)
    this.#graph = resolveGraph(this.#nodes(), this.#offers, sdkVersion)
  }

  /** Why the version that is in the folder must not take the place of the one that runs; null when it may. */
  problemOfReload(entry: PluginEntry): string | null {
    const offered = offeredManifest(entry)
    if (offered === undefined) return 'its plugin.json is gone'
    const next = this.#consented(entry, offered)
    const replaced = (node: Node): Node => (node.id === entry.id ? next : node)
    const offers = offersOf(this.#manifests().map(replaced), this.#contracts)
    const { problems } = resolveGraph(this.#nodes().map(replaced), offers, sdkVersion)
    const own = problems.get(entry.id) ?? this.#missing(offered, offers)
    if (own !== null && own !== undefined) return own
    for (const other of this.entries.values()) {
      if (other.run === undefined || other === entry || this.#graph.problems.has(other.id)) continue
      const problem = problems.get(other.id) ?? this.#missing(manifestOf(other), offers)
      if (problem !== null) return `"${other.id}" would not run beside it: ${problem}`
    }
    return null
  }

  /** Returns the ids of those that have been chosen anew. */
  async readChoices(): Promise<readonly string[]> {
    const before = this.choices
    this.choices = await this.options.store.all()
    this.refreshGraph()
    const ids = new Set([...before.keys(), ...this.choices.keys()])
    return [...ids].filter(id => !isDeepStrictEqual(before.get(id), this.choices.get(id)))
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

  /**
   * What was turned off because this one was, or because another provider of a contract was that this one provides now,
   * and is still there: each after what it needs.
   */
  disabledBy(id: string): string[] {
    const dependents = this.dependents(id)
    const implemented = this.#implementedBy(id)
    return this.order.filter(other => {
      const along = this.choices.get(other)?.off_with ?? null
      if (along === null || along === id) return along === id
      return (
        dependents.includes(other) &&
        this.#implementedBy(along).some(contract => implemented.includes(contract))
      )
    })
  }

  /** The contracts that it implements and that another plugin, which is on, provides; each with that one. */
  rivalsOf(entry: PluginEntry): ReadonlyArray<{ readonly contract: string; readonly provider: string }> {
    const implemented = Object.entries(offeredManifest(entry)?.implements ?? {})
    // One that cannot provide the installed version would be blocked with the other one off, too.
    const fitting = implemented.filter(([id, range]) => {
      const version = this.#offers.get(id)?.version
      return version !== undefined && semver.satisfies(version, range)
    })
    return fitting.flatMap(([contract]) =>
      (this.#offers.get(contract)?.providers ?? [])
        .filter(id => id !== entry.id && this.#isOn(this.known(id)))
        .map(provider => ({ contract, provider }))
    )
  }

  #implementedBy(id: string): string[] {
    const entry = this.entries.get(id)
    return Object.keys((entry && manifestOf(entry)?.implements) ?? {})
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
    return dependentsOf(id, this.#nodes(), this.#offers)
  }

  /** What it needs and does not run, in words; null when all does. */
  missing(entry: PluginEntry): string | null {
    return this.#missing(manifestOf(entry), this.#offers)
  }

  #missing(manifest: Manifest | undefined, offers: Offers): string | null {
    const down = Object.keys(manifest?.requires ?? {}).flatMap(id => {
      const { providers, isContract } = offers.get(id) ?? { providers: [id], isContract: false }
      const [provider = id] = providers
      const entry = this.entries.get(provider)
      if (entry?.run !== undefined) return []
      const stateOf = (one: string) => this.entries.get(one)?.state.name ?? 'not installed'
      if (!isContract) return [`"${id}", which is ${stateOf(id)}`]
      // Where none is on, any of them would do.
      const listed = entry !== undefined && this.isWanted(entry) ? [provider] : providers
      return [
        `"${id}", which nothing provides (${listed.map(one => `"${one}" is ${stateOf(one)}`).join(', ')})`
      ]
    })
    return down.length === 0 ? null : `it needs ${down.join(', ')}`
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
    const offered = offeredManifest(entry)
    if (offered === undefined) return []
    const contracts = Object.keys(offered.implements).flatMap(id => {
      const version = this.#offers.get(id)?.version
      return version === undefined ? [] : [{ id, version, name: `"${id}"` }]
    })
    return [{ id: offered.id, version: offered.version, name: 'it' }, ...contracts].flatMap(
      ({ id, version, name }) =>
        [...this.entries.values()].flatMap(user => {
          const range = manifestOf(user)?.optional[id]
          return user.run === undefined || range === undefined || semver.satisfies(version, range)
            ? []
            : [`"${user.id}", which uses ${name} in ${range} (this is ${version})`]
        })
    )
  }

  #isOn(entry: PluginEntry): boolean {
    return entry.run !== undefined || this.isWanted(entry)
  }

  /**
   * Those that take precedence in providing a contract first: what runs, what is on, what is part of the release. No update of a
   * third-party plugin takes a contract from one of the release that is on.
   */
  #manifests(): Node[] {
    const precedence = (entry: PluginEntry): number => {
      if (entry.run !== undefined) return 0
      if (this.isWanted(entry)) return entry.discovered.builtIn ? 1 : 2
      return entry.discovered.builtIn ? 3 : 4
    }
    return [...this.entries.values()]
      .sort((a, b) => precedence(a) - precedence(b) || (a.id < b.id ? -1 : 1))
      .flatMap(entry => {
        const manifest = manifestOf(entry)
        return manifest === undefined ? [] : [this.#consented(entry, manifest)]
      })
  }

  /** What a third-party plugin has come to implement since an operator turned it on is not provided by it. */
  #consented(entry: PluginEntry, manifest: Manifest): Node {
    if (entry.discovered.builtIn || !this.isWanted(entry)) return manifest
    const granted = this.choices.get(entry.id)?.grants ?? []
    const isGranted = (id: string): boolean => granted.includes(implementsGrant(id))
    return {
      ...manifest,
      implements: Object.fromEntries(Object.entries(manifest.implements).filter(([id]) => isGranted(id))),
      unconsented: Object.keys(manifest.implements).filter(id => !isGranted(id))
    }
  }

  #nodes(): Node[] {
    // A plugin that was never turned on is not used by another one.
    const isThere = (id: string): boolean => {
      const entry = this.entries.get(providerOf(id, this.#offers))
      return entry !== undefined && this.#isOn(entry)
    }
    return this.#manifests().map(manifest => ({
      ...manifest,
      optional: Object.fromEntries(Object.entries(manifest.optional).filter(([id]) => isThere(id)))
    }))
  }
}
