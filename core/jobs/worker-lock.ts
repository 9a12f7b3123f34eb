import { pause, untilAborted } from '../clock/waits.js'
import type { Session } from '../database/session.js'

/** Under this name a worker holds a lock while it lives; job-store.ts looks for ids whose lock is free. */
export const workerLockName = (workerId: string): string => `job worker ${workerId}`

const retryMs = 100

/** Shows other processes that a worker lives: a lock that is taken again whenever the connection was lost. */
export class WorkerLock {
  readonly #released = new AbortController()
  readonly #running: Promise<void>
  #isHeld = false
  #waiting: Array<() => void> = []

  constructor(session: Session, workerId: string) {
    this.#running = this.#hold(session, workerLockName(workerId))
  }

  /** Resolves while the lock is held, or when it never will be again. */
  async ready(): Promise<void> {
    if (this.#isHeld || this.#released.signal.aborted) return
    await new Promise<void>(resolve => {
      this.#waiting.push(resolve)
    })
  }

  async release(): Promise<void> {
    this.#released.abort()
    await this.#running
  }

  async #hold(session: Session, name: string): Promise<void> {
    const { signal } = this.#released
    while (!signal.aborted) {
      const wasHeld = await session.underLock(name, signal, async stop => {
        this.#isHeld = true
        this.#wake()
        await untilAborted(stop)
        this.#isHeld = false
      })
      if (!wasHeld) await pause(retryMs, signal)
    }
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
