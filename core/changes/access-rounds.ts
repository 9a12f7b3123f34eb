import { Turns } from 'busbar/sdk'
import { type AccessChange, keyOf } from './access-change.js'

/** Asks again for all that a change concerns; never throws. It is to `pass` whenever its turn is over. */
type Round = (change: AccessChange, turns: Turns) => Promise<void>

/**
 * Asks again for what is open after changes of access. Many changes of one thing cost what one costs: those that come
 * while a round about it is under way make one further round. Rounds about different things do not wait for each other,
 * and all of them together have the turns of one loop.
 */
export class AccessRounds {
  /** By what is being asked about: whether it has changed since. */
  readonly #running = new Map<string, boolean>()
  readonly #turns = new Turns()
  readonly #ends = new Set<Promise<void>>()

  constructor(private readonly round: Round) {}

  after(change: AccessChange): void {
    const key = keyOf(change)
    if (this.#running.has(key)) this.#running.set(key, true)
    else {
      const end = this.#run(key, change).finally(() => this.#ends.delete(end))
      this.#ends.add(end)
    }
  }

  /** Resolves when all that was asked for until now has been answered. */
  async asked(): Promise<void> {
    await Promise.all(this.#ends)
  }

  async #run(key: string, change: AccessChange): Promise<void> {
    this.#running.set(key, true)
    while (this.#running.get(key) === true) {
      // The request that makes the change does not wait for it.
      await this.#turns.pass()
      this.#running.set(key, false)
      await this.round(change, this.#turns)
    }
    this.#running.delete(key)
  }
}
