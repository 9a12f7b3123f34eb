import type { Caller } from 'busbar/sdk'
import { streamProblems } from '../declarations/responses.js'

/**
 * How many event streams each user has open. An open one counts as one request, whatever it costs while it lives, so
 * rate limits do not bound it. Anonymous callers are bound by the caps of connections.
 */
export class StreamCap {
  readonly #open = new Map<string, number>()

  constructor(readonly maxPerUser: number) {}

  /** Those of all users. */
  get open(): number {
    return [...this.#open.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Throws when there are too many; returns what is to be called at the end of the stream. */
  admit(caller: Caller): () => void {
    if (caller.kind === 'anonymous') return () => {}
    const { id } = caller.user
    const count = this.#open.get(id) ?? 0
    if (count >= this.maxPerUser) throw streamProblems.tooMany({ max: this.maxPerUser })
    this.#open.set(id, count + 1)
    return () => {
      const left = (this.#open.get(id) ?? 0) - 1
      if (left > 0) this.#open.set(id, left)
      else this.#open.delete(id)
    }
  }
}
