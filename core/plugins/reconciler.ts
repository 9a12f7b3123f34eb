import { join } from 'node:path'
import { isMisconfigured } from '../../sdk/settings.js'
import { isStopping } from '../clock/stopping.js'
import { withDeadline, withGraceAfterAbort } from '../clock/waits.js'
import type { MigrationPlan } from '../database/migrations.js'
import { faultOf } from '../frames/fault.js'
import type { TableEntry } from '../http/route-table.js'
import type { TemporaryRun } from '../resources/resource-removals.js'
import { isOfEndedRun } from '../services/while-running.js'
import { type CatalogOptions, PluginCatalog } from './catalog.js'
import { ChangeQueue } from './change-queue.js'
import { healthRound } from './health-round.js'
import { loadPlugin } from './loader.js'
import { grantsOf } from './manifest.js'
import {
  isEssential,
  isUp,
  isWatched,
  type Loaded,
  manifestOf,
  noteFault,
  offeredManifest,
  type PluginEntry,
  requireEssentials,
  routesOf,
  setState
} from './plugin-entry.js'
import { PluginRun, type RunOptions } from './plugin-run.js'
import { type Migrate, planOf } from './plugin-schema.js'
import { pluginProblems } from './problems.js'
import type { Purge } from './purge.js'
import { type Purged, purgePlugin } from './purge-plugin.js'
import { StartMarks } from './quarantine.js'
import { checkSettings, type RunParts, runOptions } from './run-options.js'
import { usersFirst } from './stop-order.js'

export interface ReconcilerOptions extends CatalogOptions, Omit<RunParts, 'closing'> {
  readonly directory: string
  readonly purge: Purge
  readonly migrate: Migrate
  /** Called with the routes of all plugins whenever one of them has come or gone. */
  readonly onRoutes: (entries: readonly TableEntry[]) => void
  /** Tells the other processes that choices have changed. */
  readonly announce: (message: string) => Promise<void>
}

const named = (ids: readonly string[]): string => ids.map(id => `"${id}"`).join(', ')
/** How long a platform that stops waits for its plugins to end. */
const closeLimitMs = 15_000
const retryDelaysMs = [1_000, 5_000, 30_000]

/**
 * Makes what runs equal what is wanted: starts, stops and reloads plugins one change at a time while
 * all others go on serving. What is wanted is in the database; what runs is here.
 */
export class Reconciler {
  readonly catalog: PluginCatalog
  readonly #changes: ChangeQueue
  readonly #marks: StartMarks
  readonly #now = (): Date => this.options.clock.now()
  readonly #closing = new AbortController()

  constructor(readonly options: ReconcilerOptions) {
    this.catalog = new PluginCatalog(options)
    this.#changes = new ChangeQueue(options.clock)
    this.#marks = new StartMarks(join(options.directory, 'starting'))
  }

  get entries(): ReadonlyMap<string, PluginEntry> {
    return this.catalog.entries
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted
  }

  /** Loads, migrates and starts the built-in plugins that are wanted. Throws when an essential one does not come up. */
  async boot(): Promise<void> {
    await this.#changes.run(async () => {
      await this.catalog.discover()
      await this.catalog.readChoices()
      await this.catalog.quarantine(this.#marks.takeCrashed())
      for (const entry of this.catalog.inOrder) {
        // Built-in plugins that are off are recorded too, so that their paths can say so.
        if (entry.discovered.builtIn) await this.#load(entry)
        else if (this.catalog.isWanted(entry) && offeredManifest(entry) !== undefined)
          setState(entry, 'starting', null, this.#now())
      }
      await this.#migrate([...this.entries.values()])
      await this.#reconcile()
    })
    requireEssentials(this.entries.values())
  }

  /** Brings up the third-party plugins that are wanted, one at a time: one that hangs does not delay changes of others for long. */
  async startThirdParties(): Promise<void> {
    for (const id of this.catalog.order) {
      await this.#changes
        .run(async () => {
          const entry = this.entries.get(id)
          if (
            entry === undefined ||
            entry.discovered.builtIn ||
            entry.run !== undefined ||
            this.#closed ||
            !this.catalog.isWanted(entry)
          )
            return
          await this.#load(entry)
          await this.#migrate([entry])
          if (entry.loaded !== undefined && this.catalog.missing(entry) === null) await this.#start(entry)
          // Built-in plugins may have been waiting for a contract that it implements.
          if (entry.run !== undefined && this.catalog.dependents(id).length > 0) await this.#reconcile([id])
          this.#publishRoutes()
          this.catalog.describeIdle(entry)
        })
        .catch((error: unknown) => {
          if (!isStopping(error))
            this.options.log.error({ err: error, plugin: id }, 'a plugin could not be brought up')
        })
    }
  }

  /**
   * Turns a plugin on; answers when it runs. What it needs must be on already: an operator turns on what was
   * named. `cascade` enables again what its cascade turned off; one of those that does not start says why itself.
   */
  async enable(id: string, { cascade = false }: { cascade?: boolean } = {}): Promise<PluginEntry> {
    return await this.#change('', async () => {
      await this.catalog.discover()
      const found = this.catalog.known(id)
      const [rival] = found.run === undefined ? this.catalog.rivalsOf(found) : []
      if (rival !== undefined) throw pluginProblems.rival({ id, ...rival }, rival)
      const unfit = found.run === undefined ? this.catalog.unfitFor(found) : []
      if (unfit.length > 0) throw pluginProblems.unfit({ id, users: unfit.join(', ') })
      const manifest = manifestOf(found)
      await this.catalog.choose([id], {
        desired: 'on',
        grants: manifest === undefined ? [] : grantsOf(manifest),
        quarantined: null,
        off_with: null
      })
      found.failures = 0
      if (found.run === undefined) {
        await this.#load(found)
        await this.#migrate([found])
      }
      await this.#reconcile([id])
      // Looked at now: the next change in the queue may turn it off again.
      const { name, reason } = found.state
      if (name === 'blocked') throw pluginProblems.dependencies({ id, reason: reason ?? '' })
      if (!isUp(found.state)) throw pluginProblems.failed({ id, reason: reason ?? name })
      if (cascade) await this.#reenable(this.catalog.disabledBy(id))
      return found
    })
  }

  /** Turns a plugin off. Plugins that need it are named first (409); `cascade` and `force` decide what happens to them. */
  async disable(
    id: string,
    { cascade = false, force = false }: { cascade?: boolean; force?: boolean }
  ): Promise<PluginEntry> {
    return await this.#change('', async () => {
      const found = this.catalog.known(id)
      if (isEssential(found)) throw pluginProblems.essential({ id })
      const dependents = this.catalog
        .dependents(id)
        .filter(other => this.catalog.isWanted(this.catalog.known(other)))
      const essential = dependents.find(other => isEssential(this.catalog.known(other)))
      if (essential !== undefined) throw pluginProblems.essential({ id: essential })
      if (dependents.length > 0 && !cascade && !force) {
        throw pluginProblems.needed(
          { id, dependents: dependents.map(other => `"${other}"`).join(', ') },
          { dependents }
        )
      }
      await this.catalog.chooseOff(id, cascade ? dependents : [])
      await this.#reconcile()
      return found
    })
  }

  /** Loads the plugin's code and settings again and starts it beside the old version before that stops. */
  async reload(id: string): Promise<PluginEntry> {
    return await this.#change(id, async () => {
      const found = this.catalog.known(id)
      if (found.run === undefined) throw pluginProblems.notRunning({ id })
      await this.catalog.discover()
      await this.#replace(found)
      return found
    })
  }

  /**
   * Removes what a plugin that is off has stored: its schema, jobs, settings and files. Also one whose code is gone,
   * which is then given as nothing but its id. With `dryRun` nothing is removed.
   */
  async purge(id: string, { dryRun = false }: { dryRun?: boolean } = {}): Promise<Purged> {
    return await this.#changes.runSoon(async () => {
      const purged = await purgePlugin(id, dryRun, this.catalog, this.options.purge)
      if (!dryRun) await this.options.announce('').catch(() => {})
      return purged
    })
  }

  async #reenable(ids: readonly string[]): Promise<void> {
    const back = ids.map(id => this.catalog.known(id))
    await this.catalog.choose(ids, { desired: 'on', quarantined: null, off_with: null })
    for (const entry of back) if (entry.run === undefined) await this.#load(entry)
    await this.#migrate(back)
    await this.#reconcile(ids)
  }

  /** Replaces a plugin's settings, checked before they are kept; a running plugin is reloaded with them. */
  async configure(id: string, config: Readonly<Record<string, unknown>>): Promise<PluginEntry> {
    return await this.#change(id, async () => {
      const found = this.catalog.known(id)
      checkSettings(found, config, this.options.variables)
      const desired = this.catalog.isWanted(found) ? 'on' : 'off'
      const before = this.catalog.choices.get(id)?.config ?? {}
      await this.catalog.choose([id], { desired, config })
      if (found.run === undefined) await this.#reconcile([id])
      else {
        await this.#replace(found).catch(async (error: unknown) => {
          // What runs has the settings of before, and so it has after the next start.
          await this.catalog.choose([id], { desired, config: before })
          throw error
        })
      }
      return found
    })
  }

  /** See `DisabledPlugins`: what runs so is plugged into nothing, so others may change meanwhile. */
  async runTemporarily<T>(
    schema: string,
    signal: AbortSignal,
    use: (run: TemporaryRun) => Promise<T>
  ): Promise<T | undefined> {
    const reading = this.#changes.run(async () => {
      await this.catalog.discover()
      const found = this.catalog.offWithin(schema)
      for (const entry of found) if (entry.loaded === undefined) await this.#load(entry)
      return found
    })
    const off = await withGraceAfterAbort(reading, signal, 0)
    if (!off.every(({ loaded }) => loaded !== undefined)) return undefined
    const versions = off.map(entry => this.#runOptions(entry))
    return await PluginRun.runTemporarily(versions, schema, use)
  }

  /** Another process has changed something: read the choices again; `reloaded` names a plugin to reload. */
  async refresh(reloaded: string): Promise<void> {
    await this.#changes.run(async () => {
      await this.catalog.discover()
      const changed = await this.catalog.readChoices()
      const entry = this.entries.get(reloaded)
      if (entry?.run !== undefined) await this.#replace(entry)
      for (const other of this.entries.values())
        if (other.loaded === undefined && this.catalog.isWanted(other)) await this.#load(other)
      // What has been changed of which is not told: those that have failed here for themselves have their own turns.
      await this.#reconcile([reloaded, ...changed])
    })
  }

  /** Looks for plugins that have been put into the folders, or taken out, since; not while something changes, which may take long. */
  async rescan(): Promise<void> {
    if (this.#changes.isEmpty) await this.#changes.run(async () => await this.catalog.discover())
  }

  /** Asks every running plugin how it is. */
  async checkHealth(): Promise<void> {
    await healthRound(this.entries.values(), this.options.clock)
  }

  /** An uncaught error of a plugin's timer or promise. */
  noteUncaughtError(id: string, error: unknown): void {
    if (isOfEndedRun(error)) return
    noteFault(this.entries.get(id), `an error was not caught: ${faultOf(error).message}`, this.#now())
  }

  /** Stops everything, last started first. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the platform is stopping'))
    this.#marks.close()
    const running = (): PluginEntry[] => [...this.entries.values()].filter(entry => entry.run !== undefined)
    const stopped = this.#changes.run(async () => await this.#stop(running()))
    await withDeadline(stopped, closeLimitMs, 'stopping the plugins').catch(() => {})
    for (const { id, state } of this.entries.values()) {
      if (state.name === 'stopping')
        this.options.log.error(
          { plugin: id },
          `the plugin "${id}" did not end within ${closeLimitMs / 1000} s, and is left behind`
        )
    }
  }

  /** A change of this process's own, of which it tells the others; `reloaded` names a plugin for them to reload. */
  async #change(reloaded: string, work: () => Promise<PluginEntry>): Promise<PluginEntry> {
    try {
      const entry = await this.#changes.runSoon(work)
      await this.options.announce(reloaded)
      return entry
    } catch (error) {
      // What is wanted may have changed all the same.
      await this.options.announce('').catch(() => {})
      throw error
    }
  }

  /** Reads a plugin's code and records what it declares. */
  async #load(entry: PluginEntry): Promise<void> {
    if (offeredManifest(entry) === undefined) return
    try {
      entry.loaded = await this.#read(entry)
    } catch (error) {
      entry.loaded = undefined
      this.#fail(entry, error)
    }
  }

  /** The version that is in the folder. */
  async #read(entry: PluginEntry): Promise<Loaded> {
    const { discovered } = entry
    if ('fault' in discovered) throw new Error(discovered.fault)
    this.#marks.begin(entry.id)
    try {
      const inline = this.options.inline.find(({ manifest: { id } }) => id === entry.id)?.definition
      const others = [...this.entries.values()]
        .filter(other => other !== entry)
        .flatMap(other => other.loaded?.records ?? [])
      const options = { inline, cache: join(this.options.directory, 'bundles'), others }
      return await this.#changes.doing(
        `the loading of "${entry.id}"`,
        async () => await loadPlugin(discovered, discovered.manifest, options)
      )
    } finally {
      this.#marks.started(entry.id, isWatched(entry))
    }
  }

  async #migrate(entries: readonly PluginEntry[]): Promise<void> {
    const order = this.catalog.order
    const plans = [...entries]
      .sort((a, b) => order.indexOf(a.id) - order.indexOf(b.id))
      .flatMap(entry => planOf(entry, entry.loaded, this.catalog.choices.get(entry.id)))
    const failed = await this.#runMigrations(plans)
    for (const [id, error] of failed) {
      const entry = this.entries.get(id)
      if (entry === undefined) continue
      entry.loaded = undefined
      setState(entry, 'migration-failed', error.message, this.#now())
      this.options.log.error({ err: error, plugin: id }, 'a migration failed')
    }
  }

  async #runMigrations(plans: readonly MigrationPlan[]): Promise<ReadonlyMap<string, Error>> {
    const ids = named(plans.map(({ plugin }) => plugin))
    const work = async () => await this.options.migrate(plans, this.#closing.signal)
    return await this.#changes.doing(`the migration of ${ids}`, work)
  }

  /**
   * Stops what should not run, starts what should, in dependency order. What has failed to start is tried again when it, or what
   * it uses, is among the `changed`: nobody else waits for it.
   */
  async #reconcile(changed: readonly string[] = []): Promise<void> {
    const staying = new Set(this.catalog.startable())
    const order = this.catalog.order.map(id => this.catalog.known(id))
    await this.#stop(order.reverse().filter(entry => entry.run !== undefined && !staying.has(entry)))
    // What a plugin that has stopped provided, another one may provide now.
    this.catalog.refreshGraph()
    for (const entry of this.catalog.startable())
      if (entry.run === undefined && this.catalog.isDue(entry, changed)) await this.#start(entry)
    this.#publishRoutes()
    for (const entry of this.entries.values()) {
      // Also of one that was off already, for want of another.
      if (!this.#closed && !this.catalog.isWanted(entry)) this.options.registries.events.unsubscribe(entry.id)
      this.catalog.describeIdle(entry)
    }
  }

  async #start(entry: PluginEntry): Promise<void> {
    setState(entry, 'starting', null, this.#now())
    entry.early = undefined
    this.#marks.begin(entry.id)
    this.options.registries.jobs.declare(entry.id, entry.loaded?.records.jobs ?? [])
    try {
      entry.run = await this.#startRun(entry)
      entry.failures = 0
      entry.run.uncaughtError = entry.early
      setState(entry, entry.early === undefined ? 'running' : 'degraded', entry.early ?? null, this.#now())
      this.#marks.started(entry.id, isWatched(entry))
    } catch (error) {
      this.#marks.end(entry.id)
      this.#fail(entry, error)
    }
  }

  /**
   * Takes plugins out of the route table at once, then lets each finish what it has begun: those that use
   * another one before it, the rest side by side.
   */
  async #stop(entries: readonly PluginEntry[]): Promise<void> {
    if (entries.length === 0) return
    const stopping = new Map(
      entries.map(entry => [entry.id, { entry, run: entry.run, uses: this.catalog.usedBefore(entry) }])
    )
    for (const { entry } of stopping.values()) {
      entry.run = undefined
      setState(entry, 'stopping', null, this.#now())
    }
    this.#publishRoutes()
    await this.#changes.doing(`the stop of ${named([...stopping.keys()])}`, async () => {
      await usersFirst(new Map([...stopping].map(([id, { uses }]) => [id, uses])), async id => {
        const stopped = stopping.get(id)
        if (stopped === undefined) return
        await stopped.run?.end({ isReplaced: false }).catch((error: unknown) => {
          this.options.log.error({ err: error, plugin: id }, 'the plugin did not end cleanly')
        })
        this.#marks.forget(id)
        setState(stopped.entry, 'stopped', null, this.#now())
      })
    })
  }

  /** The new version runs before the old one stops; when it does not come up, nothing has changed, the records and the state included. */
  async #replace(entry: PluginEntry): Promise<void> {
    const { run: old } = entry
    try {
      const loaded = await this.#read(entry)
      const problem = this.catalog.problemOfReload(entry)
      if (problem !== null) throw new Error(problem)
      for (const error of (
        await this.#runMigrations(planOf(entry, loaded, this.catalog.choices.get(entry.id)))
      ).values())
        throw error
      this.#marks.begin(entry.id)
      Object.assign(entry, { early: undefined, isBeingReplaced: true })
      entry.run = await this.#startRun(entry, loaded, old)
      entry.run.uncaughtError = entry.early
      entry.loaded = loaded
      this.#marks.started(entry.id, isWatched(entry))
    } catch (error) {
      this.#marks.started(entry.id, isWatched(entry))
      if (isStopping(error)) throw error
      this.options.log.error(
        { err: error, plugin: entry.id },
        'the plugin could not be reloaded; the version of before keeps running'
      )
      throw pluginProblems.reloadFailed({ id: entry.id, reason: faultOf(error).message })
    } finally {
      entry.isBeingReplaced = false
    }
    const { uncaughtError: reason = null } = entry.run
    entry.state = { name: reason === null ? 'running' : 'degraded', reason, since: this.#now() }
    this.catalog.refreshGraph()
    this.#publishRoutes()
    await this.#changes.doing(`the stop of "${entry.id}"`, async () => await old?.end({ isReplaced: true }))
  }

  #runOptions(entry: PluginEntry, loaded = entry.loaded): RunOptions {
    const choice = this.catalog.choices.get(entry.id)
    return runOptions(entry, loaded, choice, { ...this.options, closing: this.#closing.signal })
  }

  async #startRun(entry: PluginEntry, loaded = entry.loaded, old?: PluginRun): Promise<PluginRun> {
    return await this.#changes.doing(
      `the start of "${entry.id}"`,
      async () => await PluginRun.start(this.#runOptions(entry, loaded), old)
    )
  }

  /** States what went wrong, and tries again later where that may help. */
  #fail(entry: PluginEntry, error: unknown): void {
    const fault = faultOf(error)
    this.options.log.error({ err: error, plugin: entry.id }, 'the plugin did not start')
    const delay = retryDelaysMs[entry.failures]
    if (isMisconfigured(fault)) setState(entry, 'misconfigured', fault.message, this.#now())
    else if (entry.loaded === undefined || delay === undefined || this.#closed)
      setState(entry, 'failed', fault.message, this.#now())
    else {
      entry.failures++
      setState(entry, 'retrying', fault.message, this.#now())
      void this.#retry(entry.id, delay)
    }
  }

  /** Others have their changes meanwhile. */
  async #retry(id: string, delayMs: number): Promise<void> {
    await this.options.clock.sleep(delayMs, this.#closing.signal).catch(() => {})
    if (!this.#closed) await this.#changes.run(async () => await this.#reconcile([id]))
  }

  #publishRoutes(): void {
    this.options.onRoutes(routesOf(this.entries.values()))
  }
}
