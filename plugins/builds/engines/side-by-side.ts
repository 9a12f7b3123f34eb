import { type Clock, pause } from 'busbar/sdk'

interface SideBySideOptions {
  readonly clock: Pick<Clock, 'sleep'>
  /** So many at once. */
  readonly most: number
  /** What takes longer goes on, and keeps the next one waiting no more. */
  readonly patienceMs: number
}

/** Work on many things of one kind, of which one that hangs delays none of the others. */
export class SideBySide {
  readonly #going = new Set<string>()

  constructor(private readonly options: SideBySideOptions) {}

  /**
   * Begins `work`, which does not reject, for each of `keys` for which none goes on from before, in their order. Resolves when each has ended or
   * taken too long; with `signal` no more begin, and none is waited for.
   */
  async run(
    keys: readonly string[],
    work: (key: string) => Promise<void>,
    signal: AbortSignal
  ): Promise<void> {
    const waiting = keys.values()
    const oneByOne = async (): Promise<void> => {
      for (const key of waiting) {
        if (signal.aborted) return
        if (!this.#going.has(key)) await this.#begin(key, work, signal)
      }
    }
    await Promise.all(Array.from({ length: this.options.most }, oneByOne))
  }

  async #begin(key: string, work: (key: string) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, patienceMs } = this.options
    const end = new AbortController()
    const stop = (): void => end.abort()
    signal.addEventListener('abort', stop, { once: true })
    this.#going.add(key)
    void work(key).finally(() => {
      this.#going.delete(key)
      stop()
    })
    await pause(clock, patienceMs, end.signal)
    signal.removeEventListener('abort', stop)
  }
}
