import type { KeptChunk, LogStore } from './log-store.js'
import { ReadingTurns } from './reading-turns.js'

/**
 * What streams read of what is kept: two pieces at once, of one source one, however many streams there are, so that whoever keeps lines
 * does not wait for the database behind them. Those that want the same piece share it.
 */
export class StreamReads {
  readonly #turns = new ReadingTurns()
  /** Until they are there. */
  readonly #pieces = new Map<string, Promise<readonly KeptChunk[]>>()

  constructor(private readonly store: Pick<LogStore, 'after'>) {}

  async after(...[sourceId, range, bytes]: Parameters<LogStore['after']>): Promise<readonly KeptChunk[]> {
    const key = [sourceId, range.from, range.below, range.containerId, bytes].join()
    const piece =
      this.#pieces.get(key) ?? this.#read(key, sourceId, () => this.store.after(sourceId, range, bytes))
    this.#pieces.set(key, piece)
    return await piece
  }

  async #read(
    key: string,
    sourceId: string,
    read: () => Promise<readonly KeptChunk[]>
  ): Promise<readonly KeptChunk[]> {
    try {
      return (await this.#turns.step(sourceId, {}, read)) ?? []
    } finally {
      this.#pieces.delete(key)
    }
  }
}
