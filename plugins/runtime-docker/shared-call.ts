/** One call at a time. Callers that ask while it runs share the next one, which begins after they have asked. */
export class SharedCall<T> {
  #running: Promise<T> | undefined
  #next: Promise<T> | undefined

  /** One that has not ended after `limitMs` rejects, so that it does not hold up others. */
  constructor(
    private readonly run: () => Promise<T>,
    private readonly limitMs: number
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
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`there was no answer within ${this.limitMs / 1000} s`))
      }, this.limitMs)
    })
    return await Promise.race([this.run(), late]).finally(() => {
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
