import type { Clock } from 'busbar/sdk'

/** What is the same for all who ask, and takes something to find out: made once for those who ask at a time, and kept for a while. */
export class RecentAnswer<T> {
  #answer: Promise<T> | undefined
  #goodUntil = Number.NEGATIVE_INFINITY

  constructor(
    private readonly make: () => Promise<T>,
    private readonly keptMs: number,
    private readonly clock: Pick<Clock, 'elapsed'>
  ) {}

  async read(): Promise<T> {
    if (this.#answer !== undefined && this.clock.elapsed() < this.#goodUntil) return await this.#answer
    this.#goodUntil = Number.POSITIVE_INFINITY
    const answer = this.make()
    this.#answer = answer
    try {
      await answer
      this.#goodUntil = this.clock.elapsed() + this.keptMs
    } catch {
      // Whoever asks next asks anew.
      this.#goodUntil = Number.NEGATIVE_INFINITY
    }
    return await answer
  }
}
