import { Backoff, type Clock, type Log, type OptionalHandle } from 'busbar/sdk'
import { untilAborted } from '../clock/waits.js'
import type { ServiceRegistry } from './registry.js'

const retry = { firstMs: 1_000, longestMs: 30_000 }

interface HandleParts {
  readonly registry: Pick<ServiceRegistry, 'providerRun' | 'onChange'>
  /** What calls the service. */
  readonly handle: () => object
  /** From this plugin, whichever provides it. */
  readonly isWithheld: () => boolean
  readonly clock: Clock
  readonly log: Log
  /** Aborts when the run of the plugin that holds it ends. */
  readonly ended: AbortSignal
}

/** See `OptionalHandle`. */
export function optionalHandle(id: string, parts: HandleParts): OptionalHandle<object> {
  const { registry, handle, isWithheld, clock, log, ended } = parts
  const run = (): object | undefined => (isWithheld() ? undefined : registry.providerRun(id))
  const get = (): object | undefined => (run() === undefined ? undefined : handle())

  return Object.freeze({
    get,

    async whileAvailable(
      given: AbortSignal,
      work: (service: object, signal: AbortSignal) => Promise<void>
    ): Promise<void> {
      const signal = AbortSignal.any([given, ended])
      const backoff = new Backoff(clock, retry)
      while (!signal.aborted) {
        const seen = run()
        const changed = new AbortController()
        const round = AbortSignal.any([signal, changed.signal])
        const over = new AbortController()
        registry.onChange(
          id,
          () => {
            if (run() !== seen) changed.abort()
          },
          over.signal
        )
        try {
          if (seen === undefined) await untilAborted(round)
          else {
            const begun = clock.elapsed()
            await work(handle(), round).catch((error: unknown) => {
              if (!round.aborted)
                log.warn({ err: error }, `what follows the service "${id}" failed; it begins again`)
            })
            if (changed.signal.aborted || clock.elapsed() - begun > retry.longestMs) backoff.reset()
            if (!changed.signal.aborted) await backoff.pause(round)
          }
        } finally {
          over.abort()
        }
      }
    }
  })
}
