declare const carried: unique symbol
declare const keyed: unique symbol

/**
 * A typed key for something one plugin provides and others use.
 *
 * A service is an object of methods over plain data. A method is async, or returns an `AsyncIterable`
 * or a `Readable` and then takes an `AbortSignal`. The last argument may be a `Tx` (see `Tx`).
 * The id is `<plugin>.<camelCase>`, or `<contract>.<camelCase>` of one that the plugin says in its manifest that it implements.
 */
export interface Service<T extends object> {
  readonly kind: 'service'
  readonly id: string
  /** Third-party plugins do not get it, whatever they require. */
  readonly builtInOnly: boolean
  readonly [carried]?: T
}

/** A service whose provider may be missing or turned off; `use.x` is an `OptionalHandle` then. */
export interface OptionalService<T extends object> {
  readonly kind: 'optional'
  readonly service: Service<T>
}

/** What a plugin holds of an optional service. */
export interface OptionalHandle<T extends object> {
  /** Undefined while its provider is missing or off. */
  get(): T | undefined
  /**
   * Runs `work` whenever the service is there, until `signal` aborts. `work` is given a signal of its own, which aborts
   * with `signal`, when the provider goes, and when a new version has taken its place. Work that ends before that runs
   * again after a second, then two, up to half a minute; what it throws is logged. Never rejects.
   */
  whileAvailable(signal: AbortSignal, work: (service: T, signal: AbortSignal) => Promise<void>): Promise<void>
}

/**
 * A typed key for keyed contributions that many plugins make and one plugin owns and reads. `K`: the keys that
 * there can be, where they are known (`extensionPoint<Check, 'before' | 'after'>(…)`); any text otherwise.
 */
export interface ExtensionPoint<T, K extends string = string> {
  readonly kind: 'extension-point'
  readonly id: string
  readonly [carried]?: T
  readonly [keyed]?: K
}

/** The live view of an extension point. Contributions appear and vanish as plugins start and stop. */
export interface Contributions<T, K extends string = string> {
  /** Undefined while there is no contribution under this key. */
  get(key: K): T | undefined
  /** The keys of all present contributions, in the order of contributing. */
  keys(): K[]
  /** In the order of contributing; `plugin` is the id of who does. The same list until a contribution comes or goes. */
  entries(): ReadonlyArray<{ readonly key: K; readonly plugin: string; readonly value: T }>
}

export const service = <T extends object>(
  id: string,
  { builtInOnly = false }: { readonly builtInOnly?: boolean } = {}
): Service<T> => Object.freeze({ kind: 'service', id, builtInOnly })
export const optional = <T extends object>(wanted: Service<T>): OptionalService<T> =>
  Object.freeze({ kind: 'optional', service: wanted })
export const extensionPoint = <T, K extends string = string>(id: string): ExtensionPoint<T, K> =>
  Object.freeze({ kind: 'extension-point', id })

/** What a plugin asks for, by the name under which `use` offers it. */
// biome-ignore lint/suspicious/noExplicitAny: its parameters are invariant, so nothing else says "of any"
export type Needs = Readonly<Record<string, Service<any> | OptionalService<any> | ExtensionPoint<any, any>>>

export type Resolved<N extends Needs> = {
  readonly [K in keyof N]: N[K] extends OptionalService<infer T>
    ? OptionalHandle<T>
    : N[K] extends Service<infer T>
      ? T
      : N[K] extends ExtensionPoint<infer T, infer Keys>
        ? Contributions<T, Keys>
        : never
}
