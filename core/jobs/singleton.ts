import type { Log } from 'busbar/sdk'
import { pause, untilAborted, withGraceAfterAbort } from '../clock/waits.js'
import type { Postgres } from '../database/postgres.js'
import { graceMs } from './job-execution.js'

interface SingletonOptions {
  readonly postgres: Postgres
  /** Unique in the installation: `<plugin>.<name>`. */
  readonly name: string
  /** Aborts when the work is to stop, or when the lock was lost and another process may have begun. */
  run(signal: AbortSignal): Promise<void>
  readonly signal: AbortSignal
  readonly log: Log
}

/** How often a process looks whether another one has let go. */
const takeOverMs = 2000
const firstRestartMs = 1000
const lastRestartMs = 30_000

/** Singletons of one process; all their locks are held by its one session. */
export class Singletons {
  readonly #closing = new AbortController()
  readonly #running = new Set<Promise<void>>()
  readonly #begun = new AbortController()

  constructor(private readonly postgres: Postgres) {}

  /** None runs before: the work of all of them at once would delay the platform's first answer. */
  begin(): void {
    this.#begun.abort()
  }

  async run(options: Omit<SingletonOptions, 'postgres'>): Promise<void> {
    const signal = AbortSignal.any([options.signal, this.#closing.signal])
    const ended = untilAborted(AbortSignal.any([this.#begun.signal, signal])).then(() =>
      runSingleton({ ...options, postgres: this.postgres, signal })
    )
    this.#running.add(ended)
    await ended.finally(() => {
      this.#running.delete(ended)
    })
  }

  /** Stops all of them. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the platform is stopping'))
    await Promise.all(this.#running)
  }
}

/**
 * Does work that exactly one process of an installation may do. Resolves when `signal` has aborted and
 * the work has ended, or did not end for a while. Work that throws begins again after a pause.
 */
export async function runSingleton({ postgres, name, run, signal, log }: SingletonOptions): Promise<void> {
  const work = async (stop: AbortSignal): Promise<void> => {
    try {
      await run(stop)
      // It is done; another process doing it again would be the second.
      await untilAborted(stop)
    } catch (error) {
      if (!stop.aborted) throw error
    }
  }
  for (let pauseMs = firstRestartMs; !signal.aborted; ) {
    const startedAt = performance.now()
    try {
      // When only the lock was lost there is no hurry: it must have ended before it begins again.
      const wasHeld = await withGraceAfterAbort(
        postgres.session.underLock(`singleton ${name}`, signal, work),
        signal,
        graceMs
      )
      if (wasHeld) pauseMs = firstRestartMs
      else await pause(takeOverMs, signal)
    } catch (error) {
      if (signal.aborted) {
        log.error(
          { singleton: name },
          `a singleton did not end within ${graceMs / 1000} seconds of being told to`
        )
        return
      }
      if (performance.now() - startedAt > lastRestartMs) pauseMs = firstRestartMs
      log.error({ err: error, singleton: name, pauseMs }, 'a singleton failed and is started again')
      await pause(pauseMs, signal)
      pauseMs = Math.min(pauseMs * 2, lastRestartMs)
    }
  }
}
