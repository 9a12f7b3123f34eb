import { AsyncResource } from 'node:async_hooks'
import { EventEmitter } from 'node:events'
import { type Contributions, type ExtensionPoint, Problem, type Service } from 'busbar/sdk'
import { inFrame } from '../frames/frames.js'

interface Provided {
  /** What consumers hold: the same object for the life of the process. */
  readonly handle: object
  implementation: object | undefined
  /** Which run of its provider gave it. */
  by: object | undefined
  builtInOnly: boolean
  provider: string | undefined
}

interface Contribution {
  readonly key: string
  readonly plugin: string
  readonly value: unknown
}

/** Who gives: a plugin, and which run of it. Two versions of one may give the very same object. */
interface Giver {
  readonly plugin: string
  readonly run: object
}

/**
 * Who provides what, and who contributed what.
 *
 * Consumers hold a stable handle per service. It has exactly the methods of the implementation (never
 * `then`: awaiting a handle must not call into a plugin), goes to the new implementation when its
 * provider is reloaded, and answers 503 naming the plugin when it is off.
 */
export class ServiceRegistry {
  readonly #services = new Map<string, Provided>()
  readonly #points = new Map<string, readonly Contribution[]>()
  readonly #runs = new WeakMap<Contribution, object>()
  readonly #changes = new EventEmitter().setMaxListeners(0)

  /** What is not provided here is that of `below`, whose contributions are those of both. */
  constructor(private readonly below?: ServiceRegistry) {}

  provide({ plugin, run }: Giver, { id, builtInOnly }: Service<object>, implementation: object): void {
    const entry = this.#entry(id)
    if (entry.implementation !== undefined && entry.provider !== plugin) {
      throw new Error(`the service "${id}" is already provided by the plugin "${entry.provider}"`)
    }
    entry.implementation = implementation
    entry.provider = plugin
    entry.by = run
    entry.builtInOnly = builtInOnly
    for (const name of methodsOf(implementation)) {
      if (name in entry.handle) continue
      Object.defineProperty(entry.handle, name, {
        enumerable: true,
        value: (...args: unknown[]) => this.#call(id, entry, name, args)
      })
    }
    this.#changes.emit(id)
  }

  contribute({ plugin, run }: Giver, { id }: ExtensionPoint<unknown>, key: string, value: unknown): void {
    const list = this.#points.get(id) ?? []
    // During a reload the new version contributes before the old one has gone.
    const others = list.filter(one => !(one.key === key && one.plugin === plugin))
    const taken = others.find(one => one.key === key)
    if (taken !== undefined)
      throw new Error(
        `"${key}" of the extension point "${id}" is already contributed by the plugin "${taken.plugin}"`
      )
    // Frozen: every plugin that uses the point is given this very list.
    const contribution = Object.freeze({ key, plugin, value })
    this.#runs.set(contribution, run)
    this.#points.set(id, Object.freeze([...others, contribution]))
  }

  /** Takes back what a run has provided and contributed, but for what another has taken the place of. */
  withdraw(run: object): void {
    for (const [id, entry] of this.#services) {
      if (entry.by !== run || entry.implementation === undefined) continue
      entry.implementation = undefined
      this.#changes.emit(id)
    }
    for (const [id, list] of this.#points)
      this.#points.set(id, Object.freeze(list.filter(one => this.#runs.get(one) !== run)))
  }

  handle(id: string): object {
    return this.below === undefined || this.#isProvidedHere(id)
      ? this.#entry(id).handle
      : this.below.handle(id)
  }

  isProvided(id: string): boolean {
    return this.providerRun(id) !== undefined
  }

  /** Which run of its provider answers; undefined when none does. */
  providerRun(id: string): object | undefined {
    return this.#isProvidedHere(id) ? this.#services.get(id)?.by : this.below?.providerRun(id)
  }

  /** Calls back, in the frame of the caller, whenever `providerRun` may have changed, until the signal aborts. */
  onChange(id: string, listener: () => void, signal: AbortSignal): void {
    const bound = AsyncResource.bind(listener)
    this.below?.onChange(id, listener, signal)
    this.#changes.on(id, bound)
    signal.addEventListener('abort', () => this.#changes.off(id, bound), { once: true })
  }

  isBuiltInOnly(id: string): boolean {
    return this.#services.get(id)?.builtInOnly ?? this.below?.isBuiltInOnly(id) ?? false
  }

  contributions<T, K extends string>(point: ExtensionPoint<T, K>): Contributions<T, K> {
    if (this.below !== undefined) return this.below.contributions(point)
    const { id } = point
    // What `contribute` took for this point.
    const list = () => (this.#points.get(id) ?? []) as ReturnType<Contributions<T, K>['entries']>
    return Object.freeze({
      get: (key: K) => list().find(one => one.key === key)?.value,
      keys: () => list().map(one => one.key),
      entries: () => list()
    })
  }

  #isProvidedHere(id: string): boolean {
    return this.#services.get(id)?.implementation !== undefined
  }

  #entry(id: string): Provided {
    const known = this.#services.get(id)
    if (known !== undefined) return known
    const fresh: Provided = {
      handle: Object.create(null) as object,
      implementation: undefined,
      by: undefined,
      builtInOnly: false,
      provider: undefined
    }
    this.#services.set(id, fresh)
    return fresh
  }

  #call(id: string, entry: Provided, name: string, args: readonly unknown[]): unknown {
    const { implementation, provider } = entry
    const method: unknown = implementation === undefined ? undefined : Reflect.get(implementation, name)
    if (typeof method !== 'function' || provider === undefined) {
      const owner = id.slice(0, id.indexOf('.'))
      const words =
        provider === undefined || provider === owner
          ? `the plugin "${owner}" is off; turn it on to use this`
          : `"${owner}" is off with the plugin "${provider}", which provided it; turn that on to use this`
      throw new Problem(503, 'E_PLUGIN_OFF', words, { plugin: owner })
    }
    return inFrame(provider, () => Reflect.apply(method, implementation, args))
  }
}

/** The names of an object's methods, its class's included, `constructor` and `then` left out. */
function methodsOf(implementation: object): string[] {
  const names = new Set<string>()
  for (
    let at: object | null = implementation;
    at !== null && at !== Object.prototype;
    at = Object.getPrototypeOf(at) as object | null
  ) {
    for (const name of Object.getOwnPropertyNames(at)) {
      const value: unknown = Object.getOwnPropertyDescriptor(at, name)?.value
      if (typeof value === 'function' && name !== 'constructor' && name !== 'then') names.add(name)
    }
  }
  return [...names]
}
