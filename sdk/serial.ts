/** Does one thing at a time, in the order of asking. What fails holds nobody up. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve()

  /** Settles like `work`, which begins when all that was asked for before has settled. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return await turn
  }
}
