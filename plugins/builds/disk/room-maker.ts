import type { Clock } from 'busbar/sdk'

interface RoomMakerParts {
  /** Removes from the engine what can be had again and what is unused. False where some of it takes longer, and goes on. */
  readonly remove: () => Promise<boolean>
  readonly clock: Pick<Clock, 'sleep'>
}

/** The longest wait for room; the engine goes on. */
const longestMs = 10_000

/** Makes room on the disks: once at a time, shared by all callers. */
export class RoomMaker {
  #running: Promise<boolean> | undefined
  #next: Promise<boolean> | undefined
  #begunAt = 0
  #madeAt = -Infinity
  #hasNews = false

  constructor(private readonly parts: RoomMakerParts) {}

  /**
   * Resolves with true when room was made: all that could go when this was asked has gone. With false after `withinMs`:
   * something may go yet. Never rejects: an engine that is away is reported by the next call.
   */
  async make(withinMs = longestMs): Promise<boolean> {
    return await this.#within(this.#roundFromNowOn(), withinMs)
  }

  /** Makes room unless that was done a moment ago. Waits for the round that is under way as `make` does, and for no other one. */
  async renew(everyMs: number): Promise<void> {
    if (this.isDue(everyMs)) await this.make()
    else if (this.#running !== undefined)
      await this.#within(this.#running, Math.max(0, longestMs - (performance.now() - this.#begunAt)))
  }

  async #within(round: Promise<boolean>, ms: number): Promise<boolean> {
    const done = new AbortController()
    const late = this.parts.clock.sleep(ms, done.signal).then(
      () => false,
      () => false
    )
    const isMade = await Promise.race([round, late])
    done.abort()
    return isMade
  }

  /** A build has ended: what it needed may go. */
  noteUnneeded(): void {
    this.#hasNews = true
  }

  /** Whether none was made for so long, or something may have come to be unneeded since. */
  isDue(everyMs: number): boolean {
    return this.#running === undefined && (this.#hasNews || performance.now() - this.#madeAt >= everyMs)
  }

  get isUnderWay(): boolean {
    return this.#running !== undefined
  }

  /** Whether what is missing may be there in a moment. */
  get isMaking(): boolean {
    return this.#running !== undefined && performance.now() - this.#begunAt < longestMs
  }

  /** One that is under way may have passed by what has come to be unneeded meanwhile. */
  async #roundFromNowOn(): Promise<boolean> {
    if (this.#running === undefined) return await this.#start()
    this.#next ??= this.#running.then(async () => {
      this.#next = undefined
      return await this.#start()
    })
    return await this.#next
  }

  #start(): Promise<boolean> {
    this.#hasNews = false
    this.#begunAt = performance.now()
    const running = this.parts
      .remove()
      .catch(() => true)
      .then(isAll => {
        if (this.#running === running) this.#running = undefined
        this.#madeAt = performance.now()
        return isAll
      })
    this.#running = running
    return running
  }
}
