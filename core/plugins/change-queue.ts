import { type Clock, Serial } from 'busbar/sdk'
import { changesAreBusy } from './problems.js'

/** How long an operator waits for the changes before theirs. */
const patienceMs = 10_000

/** Changes of plugins, one at a time in the order in which they come. A failed one does not stop the next. */
export class ChangeQueue {
  readonly #serial = new Serial()
  #turns = 0
  #present: string | undefined

  constructor(private readonly clock: Pick<Clock, 'sleep'>) {}

  get isEmpty(): boolean {
    return this.#turns === 0
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#turns++
    return await this.#serial.run(work).finally(() => this.#turns--)
  }

  /** The same for somebody who waits for the answer: when its turn has not come soon, it is told what has, and nothing is done. */
  async runSoon<T>(work: () => Promise<T>): Promise<T> {
    const begun = new AbortController()
    let refusal: Error | undefined
    const turn = this.run(async () => {
      if (refusal !== undefined) throw refusal
      begun.abort()
      return await work()
    })
    // It may fail before it is waited for.
    turn.catch(() => {})
    await this.clock.sleep(patienceMs, begun.signal).then(
      () => {
        if (!begun.signal.aborted) refusal = changesAreBusy(this.#present ?? 'another change')
      },
      () => {}
    )
    if (refusal !== undefined) throw refusal
    return await turn
  }

  /** What the change that has its turn is doing, for those who wait: `the start of "shop"`. */
  async doing<T>(what: string, work: () => Promise<T>): Promise<T> {
    const before = this.#present
    this.#present = what
    try {
      return await work()
    } finally {
      this.#present = before
    }
  }
}
