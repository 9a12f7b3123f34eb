import type { AnyPlugin, ExtensionPoint, Health, Log } from 'busbar/sdk'
import { withDeadline } from '../clock/waits.js'
import { PluginInstance, type InstanceParts } from '../http/plugin-instance.js'
import { createPluginContainer, type ContainerOptions } from '../services/container.js'
import { Attachment, type Sockets } from './attachment.js'
import { inFrame } from './frames.js'
import type { PluginRecords } from './records.js'

const startLimitMs = 30_000
const stopLimitMs = 10_000
const healthLimitMs = 5_000
const drainLimitMs = 10_000

export interface RunOptions {
  readonly definition: AnyPlugin
  readonly records: PluginRecords
  readonly config: Readonly<Record<string, unknown>>
  readonly log: Log
  readonly container: ContainerOptions
  readonly sockets: Sockets
  readonly http: InstanceParts
}

/**
 * One started version of a plugin: its `self`, its HTTP instance, and all that it is plugged into. During
 * an upgrade two of them live side by side until the old one has drained.
 */
export class PluginRun {
  readonly attachment: Attachment
  readonly #stops: Array<() => void | Promise<void>> = []
  readonly #abort = new AbortController()
  #self: object = {}
  #instance: PluginInstance | undefined

  private constructor (readonly options: RunOptions) {
    this.attachment = new Attachment(this, options.sockets)
  }

  /** When it does not come up, nothing has changed for `replaced`, the version it was to take the place of. */
  static async start (options: RunOptions, replaced?: PluginRun): Promise<PluginRun> {
    const run = new PluginRun(options)
    try {
      await run.#start()
      await run.attachment.attach(replaced?.attachment)
      return run
    } catch (error) {
      await run.#stop()
      throw error
    }
  }

  /** Starts a run that is plugged into nothing, for what it contributes to `point`, and ends it. */
  static async borrow <T>(options: RunOptions, point: ExtensionPoint<T>, use: (contribution: T) => Promise<void>): Promise<boolean> {
    const run = new PluginRun(options)
    try {
      await run.#start()
      const contributions: T[] = []
      options.definition.contributes?.(({ id }, _key, value) => { if (id === point.id) contributions.push(value as unknown as T) }, run.#self)
      for (const contribution of contributions) await inFrame(run.id, async () => { await use(contribution) })
      return contributions.length > 0
    } finally {
      await run.#stop()
    }
  }

  get id (): string { return this.options.container.plugin }
  get self (): object { return this.#self }
  get signal (): AbortSignal { return this.#abort.signal }
  get records (): PluginRecords { return this.options.records }
  get instance (): PluginInstance | undefined { return this.#instance }

  async health (): Promise<Health> {
    const { definition } = this.options
    if (definition.health === undefined) return { status: 'ok' }
    try {
      return await withDeadline(inFrame(this.id, async () => await definition.health?.(this.#self) ?? { status: 'ok' as const }), healthLimitMs, 'its health check')
    } catch (error) {
      return { status: 'degraded', reason: (error as Error).message }
    }
  }

  /** Lets it finish what it has begun, then ends it; a newer version may have taken its place. */
  async end ({ isReplaced }: { readonly isReplaced: boolean }): Promise<void> {
    await this.#instance?.drain(drainLimitMs)
    await this.attachment.detach(isReplaced)
    await this.#stop()
  }

  async #start (): Promise<void> {
    const { definition, records: { routes }, config, log, container, http } = this.options
    const context = {
      use: createPluginContainer(container),
      config,
      log,
      signal: this.#abort.signal,
      onStop: (stop: () => void | Promise<void>) => { this.#stops.push(stop) }
    }
    const started: unknown = await withDeadline(inFrame(this.id, async () => await definition.start?.(context)), startLimitMs, 'start')
    if (typeof started === 'object' && started !== null) this.#self = started
    this.#instance = await PluginInstance.create({ ...http, plugin: this.id, routes, self: this.#self, log })
  }

  /** Tells it to stop and runs what it registered, last first; one that hangs is left behind. */
  async #stop (): Promise<void> {
    this.#abort.abort(new Error(`the plugin "${this.id}" is stopping`))
    for (const stop of this.#stops.splice(0).reverse()) {
      try {
        await withDeadline(inFrame(this.id, async () => { await stop() }), stopLimitMs, 'onStop')
      } catch (error) {
        this.options.log.error({ err: error }, 'the plugin did not stop cleanly')
      }
    }
  }
}
