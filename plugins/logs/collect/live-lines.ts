import { type Bus, type Log, Serial } from 'busbar/sdk'
import type { KeptLines } from './log-writer.js'
import { publishLines } from './publish-lines.js'

interface Queue {
  readonly serial: Serial
  length: number
}

/**
 * Tells lines to those who listen: of one source in the order in which they were kept, of each source as fast as its
 * listeners can be told, which other sources do not wait for.
 */
export class LiveLines {
  /** By source. */
  readonly #queues = new Map<string, Queue>()

  constructor(private readonly parts: { readonly bus: Bus; readonly log: Log }) {}

  /** Resolves when they have been told, or `signal` has aborted; never rejects. */
  async tell(kept: KeptLines, signal: AbortSignal): Promise<void> {
    const { sourceId } = kept.container
    const queue = this.#queues.get(sourceId) ?? { serial: new Serial(), length: 0 }
    this.#queues.set(sourceId, queue)
    queue.length++
    try {
      await queue.serial.run(async () => {
        await publishLines(kept, this.parts.bus, signal)
      })
    } catch (error) {
      this.parts.log.error({ err: error, sourceId }, 'lines that were kept could not be told to listeners')
    } finally {
      queue.length--
      if (queue.length === 0) this.#queues.delete(sourceId)
    }
  }
}
