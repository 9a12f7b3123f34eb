import { FairQueue } from 'busbar/sdk'

/** At once, so that who stores requests always has connections left; of one asker there is one, so that nobody has them all. */
const limits = { most: 3, maxPerOwner: 1 }

/** Pages and summaries may look through all that is kept: they are read a few at once, and those who ask take turns. */
export class ReadTurns {
  readonly #queue = new FairQueue(limits)
  readonly #waiting = new Map<string, () => void>()
  #count = 0

  /** Reads when the turn of this asker has come. Rejects when the signal has aborted by then. */
  async take<T>(asker: string, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    const turn = { owner: asker, id: String(this.#count++) }
    await new Promise<void>(resolve => {
      this.#waiting.set(turn.id, resolve)
      this.#queue.add(turn)
      this.#begin()
    })
    try {
      signal.throwIfAborted()
      return await read()
    } finally {
      this.#queue.end(turn)
      this.#begin()
    }
  }

  #begin(): void {
    for (let turn = this.#queue.take(); turn !== undefined; turn = this.#queue.take()) {
      this.#waiting.get(turn.id)?.()
      this.#waiting.delete(turn.id)
    }
  }
}
