import type { Clock } from 'busbar/sdk'

interface RoomMakerParts {
  /** Frees what can be had again, or what nobody needs, of what the engine keeps. */
  readonly remove: () => Promise<void>
  readonly clock: Pick<Clock, 'sleep'>
}

/** Nobody waits longer for room; the engine goes on. */
const longestMs = 10_000

/** Makes room on the disks: once at a time, whoever asks for it. */
export class RoomMaker {
  #making: Promise<void> | undefined
  #madeAt = -Infinity

  constructor(private readonly parts: RoomMakerParts) {}

  /** Never rejects: an engine that is away is told of by what comes next. Resolves when room was made, or after `withinMs`. */
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

  /** Whether nobody has for so long. */
  isDue(everyMs: number): boolean {
    return this.#making === undefined && performance.now() - this.#madeAt >= everyMs
  }
}
