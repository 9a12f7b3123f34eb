import { type KernelServices, kindOf, Problem } from 'busbar/sdk'
import { handing } from '../frames/handed-errors.js'
import type { PluginServices } from './container.js'

type MethodName = { [S in keyof KernelServices]: keyof KernelServices[S] }[keyof KernelServices]

/** Of the kernel's services, what answers with a promise: it rejects instead of throwing. */
const promising: ReadonlySet<string> = new Set<MethodName>([
  'sql',
  'transaction',
  'enqueue',
  'emit',
  'set',
  'remove',
  'times',
  'signal',
  'directory',
  'namesOf',
  'read',
  'run'
])

const ofEnded = new WeakSet<object>()
/** True for what is thrown at a run that has ended: it says nothing of the run that is there now. */
export const isOfEndedRun = (error: unknown): boolean => ofEnded.has(error as object)

/** Of the clock: what a run that has ended may use. */
const withoutEnd: ReadonlySet<string> = new Set<MethodName>(['now', 'elapsed', 'sleep'])
/** What answers with how to stop it. */
const standing: ReadonlySet<string> = new Set<MethodName>(['every', 'onSignal'])

/** What takes a function, and as which argument. Without one it would fail later, or seem to have worked. */
const callbacks: ReadonlyMap<string, number> = new Map<MethodName, number>([
  ['transaction', 0],
  ['afterCommit', 1],
  ['every', 1],
  ['onSignal', 1]
])

/** What is wrong with a call. */
function callFault(name: string, args: readonly unknown[]): TypeError | undefined {
  const at = callbacks.get(name)
  if (at === undefined || typeof args[at] === 'function') return undefined
  return new TypeError(
    `${name} takes a function as its ${at === 0 ? 'first' : 'second'} argument; it got ${kindOf(args[at])}`
  )
}

/** The end of a run, and what is stopped then. */
export class RunEnd {
  readonly #stops = new Set<() => void>()
  #hasCome = false

  get hasCome(): boolean {
    return this.#hasCome
  }

  /** `stop` is called at the end, or when the function that this returns is, whichever is first. */
  unless(stop: () => void): () => void {
    this.#stops.add(stop)
    return () => {
      if (this.#stops.delete(stop)) stop()
    }
  }

  come(): void {
    this.#hasCome = true
    for (const stop of this.#stops) stop()
    this.#stops.clear()
  }
}

/**
 * The same services for as long as a run of a plugin lasts. A timer that it leaves behind must not go on writing,
 * publishing and enqueuing when the operator has turned it off, nor bring back what a purge has removed; and what it repeats
 * or listens to ends with it. It may still look at the time and wait. Whatever its calls fail with is known to be its own.
 */
export function whileRunning(plugin: string, services: PluginServices, end: RunEnd): PluginServices {
  const refusal = (): Problem => {
    const problem = new Problem(
      503,
      'E_PLUGIN_OFF',
      `an earlier run of the plugin "${plugin}" has ended, and still uses the platform`,
      { plugin }
    )
    ofEnded.add(problem)
    return problem
  }
  const guarded = (service: object): object =>
    Object.freeze(
      Object.fromEntries(
        Object.entries(service).map(([name, member]) => {
          if (typeof member !== 'function' || name === 'now' || name === 'elapsed') return [name, member]
          const call = (args: unknown[]): unknown => {
            const fault = callFault(name, args)
            if (fault !== undefined && promising.has(name)) return Promise.reject(fault)
            if (fault !== undefined) throw fault
            if (!end.hasCome || withoutEnd.has(name)) {
              const result: unknown = Reflect.apply(member, service, args)
              if (standing.has(name)) return end.unless(result as () => void)
              return name === 'statement' ? statement(result as (...args: unknown[]) => unknown) : result
            }
            if (promising.has(name)) return Promise.reject(refusal())
            throw refusal()
          }
          return [name, (...args: unknown[]) => handing(plugin, () => call(args))]
        })
      )
    )
  const statement =
    (run: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown =>
      handing(plugin, () => (end.hasCome ? Promise.reject(refusal()) : run(...args)))
  return Object.freeze(
    Object.fromEntries(Object.entries(services).map(([name, service]) => [name, guarded(service)]))
  ) as unknown as PluginServices
}
