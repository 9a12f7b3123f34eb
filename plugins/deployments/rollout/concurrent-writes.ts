/** Writes to the record, one after the other, beside work that need not wait for them. */
export class ConcurrentWrites {
  readonly #failed = new AbortController()
  #last: Promise<unknown> = Promise.resolve()

  /** Aborts with the error of the first write that fails: the work is not worth going on with. None comes after it. */
  get failed(): AbortSignal {
    return this.#failed.signal
  }

  add(write: () => Promise<unknown>): void {
    this.#last = this.#last.then(write)
    this.#last.catch((error: unknown) => this.#failed.abort(error))
  }

  /** Resolves when all are done; rejects with the error of the one that failed. */
  async done(): Promise<void> {
    await this.#last
  }
}
