import { Problem } from 'busbar/sdk'
import type { KernelServices } from './container.js'

/** Of the kernel's services, what answers with a promise: it rejects instead of throwing. */
const promising: ReadonlySet<string> = new Set([
  'sql',
  'transaction',
  'enqueue',
  'emit',
  'set',
  'remove',
  'times',
  'signal',
  'directory',
  'run'
])

const ofEnded = new WeakSet<object>()
/** True for what is thrown at a run that has ended: it says nothing of the run that is there now. */
export const isOfEndedRun = (error: unknown): boolean =>
  typeof error === 'object' && error !== null && ofEnded.has(error)

/**
 * The same services for as long as a run of a plugin lasts. A timer that it leaves behind must not go on writing,
 * publishing and enqueuing when the operator has turned it off, nor bring back what a purge has removed.
 */
export function whileRunning(
  plugin: string,
  services: KernelServices,
  hasEnded: () => boolean
): KernelServices {
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
          if (typeof member !== 'function') return [name, member]
          const method = (...args: unknown[]): unknown => {
            if (!hasEnded()) {
              const result: unknown = Reflect.apply(member, service, args)
              return name === 'statement' ? statement(result as (...args: unknown[]) => unknown) : result
            }
            if (promising.has(name)) return Promise.reject(refusal())
            throw refusal()
          }
          return [name, method]
        })
      )
    )
  const statement =
    (run: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): unknown =>
      hasEnded() ? Promise.reject(refusal()) : run(...args)
  return Object.freeze(
    Object.fromEntries(
      Object.entries(services).map(([name, service]) => [name, name === 'clock' ? service : guarded(service)])
    )
  )
}
