import type { Clock } from 'busbar/sdk'

interface RoomMakerParts {
  /** Removes from the engine what can be had again and what is unused. */
  readonly remove: () => Promise<void>
  readonly clock: Pick<Clock, 'sleep'>
}

/** The longest wait for room; the engine goes on. */
const longestMs = 10_000

/** Makes room on the disks: once at a time, shared by all callers. */
export class RoomMaker {
  #making: Promise<void> | undefined
  #madeAt = -Infinity

  constructor(private readonly parts: RoomMakerParts) {}

  /** Never rejects: an engine that is away is reported by the next call. Resolves when room was made, or after `withinMs`. */
  async make(withinMs = longestMs): Promise<void> {
    this.#making ??= this.parts
      .remove()
      .catch(() => undefined)
      .finally(() => {
        this.#making = undefined
        this.#madeAt = performance.now()
      })
    const done = new AbortController()
    await Promise.race([this.#making, this.parts.clock.sleep(withinMs, done.signal).catch(() => undefined)])
    done.abort()
  }

  /** Whether the last time was at least so long ago. */
  isDue(everyMs: number): boolean {
    return this.#making === undefined && performance.now() - this.#madeAt >= everyMs
  }
}
