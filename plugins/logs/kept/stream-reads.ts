import type { KeptChunk, LogStore } from './log-store.js'
import { ReadingTurns } from './reading-turns.js'

/**
 * What streams read of what is kept: two pieces at once, of one source one, however many streams there are, so that whoever keeps lines
 * does not wait for the database behind them.
 */
export class StreamReads {
  readonly #turns = new ReadingTurns()

  constructor(private readonly store: Pick<LogStore, 'after'>) {}

  async after(...[sourceId, range, bytes]: Parameters<LogStore['after']>): Promise<readonly KeptChunk[]> {
    const read = async () => await this.store.after(sourceId, range, bytes)
    return (await this.#turns.step(sourceId, {}, read)) ?? []
  }
}
