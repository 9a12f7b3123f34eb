import type { AnyPlugin, Health, Log } from 'busbar/sdk'
import { withDeadline, withGraceAfterAbort } from '../clock/waits.js'
import type { PluginRecords } from '../declarations/records.js'
import { Additions, additionsOfRun, setAdditionsOfRun } from '../frames/additions.js'
import { callPlugin, shown } from '../frames/fault.js'
import { inBeginning, inFrame } from '../frames/frames.js'
import { type InstanceParts, PluginInstance } from '../http/plugin-instance.js'
import type { TemporaryRun } from '../resources/resource-removals.js'
import { type ContainerOptions, createPluginContainer } from '../services/container.js'
import { ServiceRegistry } from '../services/registry.js'
import { RunEnd, whileRunning } from '../services/while-running.js'
import { Attachment, type PluginRegistries } from './attachment.js'
import type { Manifest } from './manifest.js'

const startLimitMs = 30_000
const stopLimitMs = 10_000
const healthLimitMs = 5_000
/** What of `onStop` has not begun when nothing is left of that has this much, all at once. */
const leastStopMs = 1_000
const drainLimitMs = 10_000

export interface RunOptions {
  readonly manifest: Manifest
  readonly definition: AnyPlugin
  readonly records: PluginRecords
  readonly config: Readonly<Record<string, unknown>>
  /** What its module has put where it is everybody's; of third-party code. */
  readonly additions?: Additions
  readonly log: Log
  readonly container: ContainerOptions
  readonly registries: PluginRegistries
  readonly http: InstanceParts
  /** Aborts when the platform stops: a start is not waited for then. */
  readonly closing: AbortSignal
  /** Called when its start has ended well, which fails when this does. */
  readonly onStarted: () => Promise<void>
  /** Called when it has ended, unless a newer version goes on. */
  readonly onEnded: () => void
}

/** What a health check answered, as what it may answer: the state of a plugin is shown to operators. */
function healthIn(answered: Health | undefined): Health {
  const { status, reason } = (answered ?? { status: 'ok' }) as { status: unknown; reason?: unknown }
  if (status === 'ok') return { status }
  if (status === 'degraded' && typeof reason === 'string') return { status, reason }
  throw new Error(
    `its health check answered ${shown(answered)}, which is neither { status: 'ok' } nor { status: 'degraded', reason: '…' }`
  )
}

/**
 * One started version of a plugin: its `self`, its HTTP instance, and all that it is plugged into. During
 * an upgrade two of them live side by side until the old one has drained.
 */
export class PluginRun {
  readonly attachment: Attachment
  readonly #stops: Array<() => void | Promise<void>> = []
  readonly #end = new RunEnd()
  readonly #abort = new AbortController()
  readonly #additions = new Additions()
  #self: object = {}
  #instance: PluginInstance | undefined
  /** The last error that it did not catch, or another fault of it. */
  uncaughtError: string | undefined

  private constructor(readonly options: RunOptions) {
    this.attachment = new Attachment(this, options.registries)
  }

  /** When it does not come up, nothing has changed for `replaced`, the version it was to take the place of. */
  static async start(options: RunOptions, replaced?: PluginRun): Promise<PluginRun> {
    const run = new PluginRun(options)
    try {
      await run.#start()
      run.#takeAdditions()
      await run.attachment.attach(replaced?.attachment)
      return run
    } catch (error) {
      if (replaced !== undefined) replaced.#takeAdditions()
      await run.#stop()
      throw error
    }
  }

  /**
   * Starts runs that are registered nowhere but with each other, passes the last one to `use`, and ends them. Those before it
   * are what it requires, in order.
   */
  static async runTemporarily<T>(
    versions: readonly RunOptions[],
    schema: string,
    use: (run: TemporaryRun) => Promise<T>
  ): Promise<T | undefined> {
    const registry = new ServiceRegistry(versions[0]?.registries.registry)
    const runs: PluginRun[] = []
    try {
      for (const options of versions) {
        const run = new PluginRun({ ...options, container: { ...options.container, registry } })
        runs.push(run)
        await run.#start()
        inFrame(run.id, () => {
          options.definition.provides?.((service, implementation) => {
            registry.provide({ plugin: run.id, run }, service, implementation)
          }, run.#self)
        })
      }
      const last = runs.at(-1)
      // One that has been turned on meanwhile keeps what it adds.
      for (const run of runs) if (additionsOfRun(run.id)?.isHeld !== true) run.#takeAdditions()
      return last && (await use(last.#temporarily(schema)))
    } finally {
      for (const run of runs.reverse()) await run.#stop()
    }
  }

  get id(): string {
    return this.options.container.plugin
  }
  get self(): object {
    return this.#self
  }
  get signal(): AbortSignal {
    return this.#abort.signal
  }
  get records(): PluginRecords {
    return this.options.records
  }
  get instance(): PluginInstance | undefined {
    return this.#instance
  }

  async health(): Promise<Health> {
    const { definition } = this.options
    if (definition.health === undefined) return { status: 'ok' }
    try {
      return await withDeadline(
        callPlugin(this.id, async () => healthIn(await definition.health?.(this.#self))),
        healthLimitMs,
        'its health check'
      )
    } catch (error) {
      return { status: 'degraded', reason: (error as Error).message }
    }
  }

  /** Lets it finish what it has begun, then ends it; a newer version may have taken its place. */
  async end({ isReplaced }: { readonly isReplaced: boolean }): Promise<void> {
    await this.#instance?.drain(drainLimitMs)
    await this.attachment.detach(isReplaced)
    await this.#stop()
    if (!isReplaced) this.options.onEnded()
  }

  async #start(): Promise<void> {
    const {
      definition,
      records: { routes },
      config,
      log,
      container,
      http,
      closing
    } = this.options
    this.#hold()
    const context = {
      use: createPluginContainer(
        container.builtIn
          ? container
          : {
              ...container,
              kernelServices: whileRunning(this.id, container.kernelServices, this.#end)
            },
        { log, ended: this.#abort.signal }
      ),
      config,
      log,
      signal: this.#abort.signal,
      onStop: (stop: () => void | Promise<void>) => {
        // A start that has timed out goes on, and what it opens has to be closed all the same.
        if (this.#end.hasCome) void this.#runStop(stop, stopLimitMs)
        else this.#stops.push(stop)
      }
    }
    const start = async (): Promise<unknown> => await definition.start?.(context)
    const starting = withDeadline(
      callPlugin(this.id, container.builtIn ? start : () => inBeginning(this.id, this.#additions, start)),
      startLimitMs,
      'start'
    )
    const started: unknown = await withGraceAfterAbort(starting, closing, 0)
    await this.options.onStarted()
    if (typeof started === 'object' && started !== null) this.#self = started
    this.#instance = await PluginInstance.create({ ...http, plugin: this.id, routes, self: this.#self, log })
  }

  #temporarily(schema: string): TemporaryRun {
    const contributed: Array<{ readonly point: string; readonly value: unknown }> = []
    inFrame(this.id, () => {
      this.options.definition.contributes?.(({ id }, _key, value) => {
        contributed.push({ point: id, value })
      }, this.#self)
    })
    return {
      plugin: this.id,
      schema,
      self: this.#self,
      resources: this.records.resources,
      // What it contributes to a point is what that takes.
      contributionsTo: ({ id }) =>
        contributed.flatMap(({ point, value }) => (point === id ? [value as never] : []))
    }
  }

  /** Tells it to stop and runs what it registered, last first; one that hangs is left behind. */
  async #stop(): Promise<void> {
    inFrame(this.id, () => {
      this.#abort.abort(new Error(`the plugin "${this.id}" is stopping`))
    })
    // All of them together: changes of other plugins wait meanwhile.
    const late = performance.now() + stopLimitMs
    const stops = this.#stops.splice(0).reverse()
    for (;;) {
      const leftMs = Math.round(late - performance.now())
      const stop = leftMs < leastStopMs ? undefined : stops.shift()
      if (stop === undefined) break
      await this.#runStop(stop, leftMs)
    }
    await Promise.all(
      stops.map(async stop => {
        await this.#runStop(stop, leastStopMs)
      })
    )
    this.#end.come()
    this.#release()
  }

  #hold(): void {
    this.options.additions?.hold()
    this.#additions.hold()
  }

  #release(): void {
    this.#additions.end()
    this.options.additions?.release()
  }

  /**
   * What the plugin puts where it is everybody's, wherever it is called, is of this run from now on. Not of built-in code:
   * its modules are evaluated once for the whole process, libraries included. It stays so after the end: what comes late is not put anywhere.
   */
  #takeAdditions(): void {
    if (!this.options.container.builtIn) setAdditionsOfRun(this.id, this.#additions)
  }

  async #runStop(stop: () => void | Promise<void>, limitMs: number): Promise<void> {
    try {
      await withDeadline(
        callPlugin(this.id, async () => {
          await stop()
        }),
        limitMs,
        'onStop'
      )
    } catch (error) {
      this.options.log.error({ err: error }, 'the plugin did not stop cleanly')
    }
  }
}
