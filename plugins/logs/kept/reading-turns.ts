import { FairQueue } from 'busbar/sdk'

/** Steps that are made at once; of one asker there is one, so that nobody has them all. */
const limits = { most: 2, maxPerOwner: 1 }

interface Wait {
  readonly signal?: AbortSignal
  /** By `performance.now()`. */
  readonly until?: number
}

/**
 * Reading is made of steps, each of which reads a few MiB at most. Two are made at once, and those who ask take turns with each of theirs,
 * so that searches through everything keep nobody waiting who wants the latest page, and the database has little of them at a time.
 */
export class ReadingTurns {
  readonly #queue = new FairQueue(limits)
  readonly #waiting = new Map<string, () => void>()
  #count = 0

  /** Makes a step when its turn has come; undefined where that was not in time. Rejects when the signal aborts before. */
  async step<T>(asker: string, wait: Wait, work: () => Promise<T>): Promise<T | undefined> {
    const turn = { owner: asker, id: String(this.#count++) }
    if (!(await this.#hasCome(turn, wait))) {
      wait.signal?.throwIfAborted()
      return undefined
    }
    try {
      return await work()
    } finally {
      this.#queue.end(turn)
      this.#begin()
    }
  }

  async #hasCome(
    turn: { readonly owner: string; readonly id: string },
    { signal, until }: Wait
  ): Promise<boolean> {
    return await new Promise<boolean>(resolve => {
      const settle = (hasTurn: boolean): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', giveUp)
        this.#waiting.delete(turn.id)
        resolve(hasTurn)
      }
      const giveUp = (): void => {
        settle(false)
      }
      const timer =
        until === undefined ? undefined : setTimeout(giveUp, Math.max(0, until - performance.now()))
      signal?.addEventListener('abort', giveUp)
      this.#waiting.set(turn.id, () => {
        settle(true)
      })
      this.#queue.add(turn)
      if (signal?.aborted === true) giveUp()
      this.#begin()
    })
  }

  #begin(): void {
    for (let turn = this.#queue.take(); turn !== undefined; turn = this.#queue.take()) {
      const begin = this.#waiting.get(turn.id)
      if (begin === undefined)
        // Who has given up is still in the queue.
        this.#queue.end(turn)
      else begin()
    }
  }
}
