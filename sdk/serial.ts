/** Runs one task at a time, in the order of the calls. One that fails does not stop the next. */
export class Serial {
  #last: Promise<unknown> = Promise.resolve()

  /** Settles like `work`, which begins when all earlier calls have settled. */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    const turn = this.#last.then(work)
    this.#last = turn.catch(() => {})
    return await turn
  }
}
