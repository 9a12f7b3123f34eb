/** One call at a time. Callers that ask while it runs share the next one, which begins after they have asked. */
export class SharedCall<T> {
  #running: Promise<T> | undefined
  #next: Promise<T> | undefined

  /**
   * One that has not ended after `limitMs` rejects, so that it does not hold up others, and its signal aborts.
   * `what` is for the error: `the list of images`.
   */
  constructor(
    private readonly run: (signal: AbortSignal) => Promise<T>,
    private readonly limitMs: number,
    private readonly what: string
  ) {}

  async answer(): Promise<T> {
    if (this.#next !== undefined) return await this.#next
    if (this.#running === undefined) return await this.#start()
    const ended = this.#running.then(
      () => undefined,
      () => undefined
    )
    this.#next = ended.then(async () => {
      this.#next = undefined
      return await this.#start()
    })
    return await this.#next
  }

  async #inTime(): Promise<T> {
    const end = new AbortController()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const error = new Error(`${this.what} did not come within ${this.limitMs / 1000} s`)
        reject(error)
        end.abort(error)
      }, this.limitMs)
      // What is waited for keeps the process alive; when that has gone, nothing is left to wait for.
      timer.unref()
    })
    return await Promise.race([this.run(end.signal), late]).finally(() => {
      clearTimeout(timer)
    })
  }

  #start(): Promise<T> {
    const running = this.#inTime().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}
