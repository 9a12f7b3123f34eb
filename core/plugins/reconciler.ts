import { join } from 'node:path'
import type { ExtensionPoint, Log } from 'busbar/sdk'
import { MisconfiguredError, pluginConfig } from '../config/plugin-config.js'
import type { MigrationPlan } from '../database/migrations.js'
import type { TableEntry } from '../http/route-table.js'
import type { KernelServices } from '../services/container.js'
import { PluginCatalog, type CatalogOptions } from './catalog.js'
import { loadPlugin } from './loader.js'
import { isEssential, isUp, manifestOf, setState, type PluginEntry } from './plugin-entry.js'
import { PluginRun, type RunOptions } from './plugin-run.js'
import { pluginProblems } from './problems.js'
import { StartMarks } from './quarantine.js'

export interface ReconcilerOptions extends CatalogOptions, Pick<RunOptions, 'http' | 'sockets'> {
  readonly directory: string
  readonly log: Log
  readonly migrate: (plans: readonly MigrationPlan[]) => Promise<ReadonlyMap<string, Error>>
  readonly kernelServices: (id: string, builtIn: boolean) => KernelServices
  /** Called with the routes of all plugins whenever one of them has come or gone. */
  readonly onRoutes: (entries: readonly TableEntry[]) => void
  /** Tells the other processes that choices have changed. */
  readonly announce: (message: string) => Promise<void>
}

const retryDelaysMs = [1_000, 5_000, 30_000]

/** The schema a plugin owns. `x_` keeps third-party names away from those of the platform. */
export const schemaOf = (id: string, builtIn: boolean): string => `${builtIn ? '' : 'x_'}${id.replaceAll('-', '_')}`

/**
 * Makes what runs equal what is wanted: starts, stops and reloads plugins one change at a time while
 * everybody else goes on serving. What is wanted is in the database; what runs is here.
 */
export class Reconciler {
  readonly catalog: PluginCatalog
  #turn: Promise<unknown> = Promise.resolve()
  readonly #marks: StartMarks
  readonly #retries = new Set<NodeJS.Timeout>()
  #closed = false

  constructor (readonly options: ReconcilerOptions) {
    this.catalog = new PluginCatalog(options)
    this.#marks = new StartMarks(join(options.directory, 'starting'))
  }

  get entries (): ReadonlyMap<string, PluginEntry> { return this.catalog.entries }

  /** Loads, migrates and starts all that is wanted. Throws when an essential plugin does not come up. */
  async boot (): Promise<void> {
    await this.#exclusive(async () => {
      await this.catalog.discover()
      await this.catalog.readChoices()
      await this.#quarantineCrashed()
      for (const entry of this.entries.values()) {
        // Built-in plugins that are off are recorded too, so that their paths can say so.
        if (entry.discovered.builtIn || this.catalog.isWanted(entry)) await this.#load(entry)
      }
      await this.#migrate([...this.entries.values()])
      await this.#reconcile()
    })
    const down = [...this.entries.values()].filter(entry => isEssential(entry) && !isUp(entry.state))
    if (down.length > 0) {
      throw new Error(`the platform cannot start without ${down.map(({ id, state }) => `"${id}" (${state.reason ?? state.name})`).join(', ')}`)
    }
  }

  /** Turns a plugin on; answers when it runs. What it needs must be on already: an operator turns on what was named. */
  async enable (id: string): Promise<PluginEntry> {
    return await this.#change('', async () => {
      await this.catalog.discover()
      const found = this.catalog.known(id)
      await this.catalog.choose([id], { desired: 'on', grants: manifestOf(found)?.grants ?? [], quarantined: null })
      found.failures = 0
      if (found.run === undefined) {
        await this.#load(found)
        await this.#migrate([found])
      }
      await this.#reconcile()
      // Looked at now: the next change in the queue may turn it off again.
      const { name, reason } = found.state
      if (name === 'blocked') throw pluginProblems.dependencies({ id, reason: reason ?? '' })
      if (!isUp(found.state)) throw pluginProblems.failed({ id, reason: reason ?? name })
      return found
    })
  }

  /** Turns a plugin off. Others that need it are named first (409); `cascade` and `force` say what becomes of them. */
  async disable (id: string, { cascade = false, force = false }: { cascade?: boolean, force?: boolean }): Promise<PluginEntry> {
    return await this.#change('', async () => {
      const found = this.catalog.known(id)
      if (isEssential(found)) throw pluginProblems.essential({ id })
      const dependents = this.catalog.dependents(id).filter(other => this.catalog.isWanted(this.catalog.known(other)))
      const essential = dependents.find(other => isEssential(this.catalog.known(other)))
      if (essential !== undefined) throw pluginProblems.essential({ id: essential })
      if (dependents.length > 0 && !cascade && !force) {
        throw pluginProblems.needed({ id, dependents: dependents.map(other => `"${other}"`).join(', ') }, { dependents })
      }
      await this.catalog.choose(cascade ? [id, ...dependents] : [id], { desired: 'off' })
      await this.#reconcile()
      return found
    })
  }

  /** Loads the plugin's code and settings again and starts it beside the old version before that stops. */
  async reload (id: string): Promise<PluginEntry> {
    return await this.#change(id, async () => {
      const found = this.catalog.known(id)
      if (found.run === undefined) throw pluginProblems.notRunning({ id })
      await this.catalog.discover()
      await this.#replace(found)
      return found
    })
  }

  /** Replaces a plugin's settings, checked before they are kept; a running plugin is reloaded with them. */
  async configure (id: string, config: Readonly<Record<string, unknown>>): Promise<PluginEntry> {
    return await this.#change(id, async () => {
      const found = this.catalog.known(id)
      if (found.loaded !== undefined) {
        try {
          pluginConfig(found.loaded.definition, config)
        } catch (error) {
          throw pluginProblems.config({ id, reason: (error as Error).message })
        }
      }
      await this.catalog.choose([id], { desired: this.catalog.isWanted(found) ? 'on' : 'off', config })
      if (found.run === undefined) await this.#reconcile()
      else await this.#replace(found)
      return found
    })
  }

  /** See `DormantPlugins`. It needs no turn: the run that is borrowed is plugged into nothing. */
  async borrow <T>(point: ExtensionPoint<T>, schema: string, use: (contribution: T) => Promise<void>): Promise<boolean> {
    const entry = [...this.entries.values()].find(({ id, discovered }) => schemaOf(id, discovered.builtIn) === schema)
    if (entry === undefined || entry.run !== undefined) return false
    if (entry.loaded === undefined) await this.#exclusive(async () => { await this.#load(entry) })
    return entry.loaded !== undefined && await PluginRun.borrow(this.#runOptions(entry), point, use)
  }

  /** Another process has changed something: read the choices again; `reloaded` names a plugin to reload. */
  async refresh (reloaded: string): Promise<void> {
    await this.#exclusive(async () => {
      await this.catalog.discover()
      await this.catalog.readChoices()
      const entry = this.entries.get(reloaded)
      if (entry?.run !== undefined) await this.#replace(entry)
      for (const other of this.entries.values()) if (other.loaded === undefined && this.catalog.isWanted(other)) await this.#load(other)
      await this.#reconcile()
    })
  }

  /** Looks for plugins that have been put into the folders, or taken out, since. */
  async rescan (): Promise<void> {
    await this.#exclusive(async () => { await this.catalog.discover() })
  }

  /** Asks every running plugin how it is. */
  async checkHealth (): Promise<void> {
    await Promise.all([...this.entries.values()].map(async entry => {
      const { run } = entry
      if (run === undefined || !isUp(entry.state) || run.options.definition.health === undefined) return
      const health = await run.health()
      if (entry.run !== run || !isUp(entry.state)) return
      if (health.status === 'ok') setState(entry, 'running', null, this.#now())
      else setState(entry, 'degraded', health.reason, this.#now())
    }))
  }

  /** An error nobody caught, left behind by a plugin's timer or promise. */
  noteStray (id: string, error: unknown): void {
    const entry = this.entries.get(id)
    if (entry !== undefined && isUp(entry.state)) setState(entry, 'degraded', `an error was not caught: ${(error as Error)?.message ?? String(error)}`, this.#now())
  }

  /** Stops everything, last started first. */
  async close (): Promise<void> {
    this.#closed = true
    for (const timer of this.#retries) clearTimeout(timer)
    await this.#exclusive(async () => {
      await this.#stop([...this.catalog.order].reverse().map(id => this.catalog.known(id)).filter(entry => entry.run !== undefined))
    })
  }

  #now (): Date {
    return this.options.clock.now()
  }

  /** One change at a time; a failed one does not stop the next. */
  async #exclusive<T> (work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work, work)
    this.#turn = turn.catch(() => {})
    return await turn
  }

  /** A change of this process's own, of which it tells the others; `reloaded` names a plugin for them to reload. */
  async #change (reloaded: string, work: () => Promise<PluginEntry>): Promise<PluginEntry> {
    const entry = await this.#exclusive(work)
    await this.options.announce(reloaded)
    return entry
  }

  async #quarantineCrashed (): Promise<void> {
    for (const id of this.#marks.takeCrashed()) {
      const entry = this.entries.get(id)
      if (entry === undefined || isEssential(entry)) continue
      const reason = 'the process died while this plugin was starting; enable it to try again'
      await this.catalog.choose([id], { desired: this.catalog.choices.get(id)?.desired ?? 'on', quarantined: reason })
    }
  }

  /** Reads a plugin's code and records what it declares. */
  async #load (entry: PluginEntry): Promise<void> {
    const manifest = manifestOf(entry)
    if (manifest === undefined) return
    this.#marks.begin(entry.id)
    try {
      const inline = this.options.inline.find(({ manifest: { id } }) => id === entry.id)?.definition
      const others = [...this.entries.values()].filter(other => other !== entry).flatMap(other => other.loaded?.records.routes ?? [])
      entry.loaded = await loadPlugin(entry.discovered, manifest, { inline, cache: join(this.options.directory, 'bundles'), others })
    } catch (error) {
      if (entry.run !== undefined) throw error
      entry.loaded = undefined
      this.#fail(entry, error)
    } finally {
      this.#marks.end()
    }
  }

  async #migrate (entries: readonly PluginEntry[]): Promise<void> {
    const order = this.catalog.order
    const plans = entries.filter(entry => (entry.loaded?.definition.migrations?.length ?? 0) > 0)
      .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
      .map(({ id, discovered, loaded }) => ({ plugin: id, schema: schemaOf(id, discovered.builtIn), migrations: loaded?.definition.migrations ?? [] }))
    const failed = await this.options.migrate(plans)
    for (const [id, error] of failed) {
      const entry = this.entries.get(id)
      if (entry === undefined) continue
      entry.loaded = undefined
      setState(entry, 'migration-failed', error.message, this.#now())
      this.options.log.error({ err: error, plugin: id }, 'a migration failed')
    }
  }

  /** Stops what should not run, starts what should, in dependency order. */
  async #reconcile (): Promise<void> {
    const should = new Set<string>()
    for (const id of this.catalog.order) {
      const entry = this.catalog.known(id)
      const needs = Object.keys(manifestOf(entry)?.requires ?? {})
      if (this.catalog.isWanted(entry) && entry.loaded !== undefined && needs.every(need => should.has(need))) should.add(id)
    }
    const order = [...this.catalog.order].map(id => this.catalog.known(id))
    await this.#stop([...order].reverse().filter(entry => entry.run !== undefined && !should.has(entry.id)))
    for (const entry of order) {
      if (entry.run !== undefined || !should.has(entry.id)) continue
      if (this.catalog.missing(entry) === null) await this.#start(entry)
    }
    this.#publishRoutes()
    for (const entry of this.entries.values()) this.catalog.describeIdle(entry)
  }

  async #start (entry: PluginEntry): Promise<void> {
    setState(entry, 'starting', null, this.#now())
    this.#marks.begin(entry.id)
    this.options.sockets.jobs.declare(entry.id, entry.loaded?.records.jobs ?? [])
    try {
      entry.run = await PluginRun.start(this.#runOptions(entry))
      entry.failures = 0
      setState(entry, 'running', null, this.#now())
    } catch (error) {
      this.#fail(entry, error)
    } finally {
      this.#marks.end()
    }
  }

  /** Takes plugins out of the route table at once, then lets each finish what it has begun. */
  async #stop (entries: readonly PluginEntry[]): Promise<void> {
    if (entries.length === 0) return
    const stopping = entries.map(entry => ({ entry, run: entry.run }))
    for (const { entry } of stopping) {
      entry.run = undefined
      setState(entry, 'stopping', null, this.#now())
    }
    this.#publishRoutes()
    for (const { entry, run } of stopping) {
      await run?.end({ isReplaced: false })
      if (!this.#closed && !this.catalog.isWanted(entry)) this.options.sockets.events.unsubscribe(entry.id)
      setState(entry, 'stopped', null, this.#now())
    }
  }

  /** The new version runs before the old one stops; when it does not come up, nothing has changed. */
  async #replace (entry: PluginEntry): Promise<void> {
    const { run: old, loaded } = entry
    try {
      await this.#load(entry)
      await this.#migrate([entry])
      if (entry.loaded === undefined) throw new Error(entry.state.reason ?? 'its migrations failed')
      entry.run = await PluginRun.start(this.#runOptions(entry), old)
    } catch (error) {
      entry.loaded = loaded
      setState(entry, 'running', null, this.#now())
      throw pluginProblems.reloadFailed({ id: entry.id, reason: (error as Error).message })
    }
    setState(entry, 'running', null, this.#now())
    this.#publishRoutes()
    await old?.end({ isReplaced: true })
  }

  #runOptions (entry: PluginEntry): RunOptions {
    const { loaded, id, discovered } = entry
    const manifest = manifestOf(entry)
    if (loaded === undefined || manifest === undefined) throw new Error(`the plugin "${id}" is not loaded`)
    const log = this.options.log.child({ plugin: id })
    const { http, sockets, kernelServices } = this.options
    return {
      ...loaded,
      http,
      sockets,
      log,
      config: pluginConfig(loaded.definition, this.catalog.choices.get(id)?.config ?? {}),
      container: {
        plugin: id,
        builtIn: discovered.builtIn,
        needs: loaded.definition.needs ?? {},
        grants: discovered.builtIn ? manifest.grants : this.catalog.choices.get(id)?.grants.filter(grant => manifest.grants.includes(grant)) ?? [],
        reachable: new Set([id, ...Object.keys(manifest.requires), ...Object.keys(manifest.optional)]),
        registry: sockets.registry,
        kernelServices: kernelServices(id, discovered.builtIn)
      }
    }
  }

  /** States what went wrong, and tries again later where that may help. */
  #fail (entry: PluginEntry, error: unknown): void {
    const { message } = error as Error
    this.options.log.error({ err: error, plugin: entry.id }, 'the plugin did not start')
    const delay = retryDelaysMs[entry.failures]
    if (error instanceof MisconfiguredError) setState(entry, 'misconfigured', message, this.#now())
    else if (entry.loaded === undefined || delay === undefined || this.#closed) setState(entry, 'failed', message, this.#now())
    else {
      entry.failures++
      setState(entry, 'retrying', message, this.#now())
      const timer = setTimeout(() => {
        this.#retries.delete(timer)
        if (!this.#closed) void this.#exclusive(async () => { await this.#reconcile() })
      }, delay)
      timer.unref()
      this.#retries.add(timer)
    }
  }

  #publishRoutes (): void {
    this.options.onRoutes([...this.entries.values()].flatMap(entry =>
      (entry.loaded?.records.routes ?? []).map(record => ({ record, instance: entry.run?.instance }))
    ))
  }
}
