/** One call at a time. Whoever asks while it runs shares the next one, which begins after they have asked. */
export class SharedCall<T> {
  #running: Promise<T> | undefined
  #next: Promise<T> | undefined

  constructor(private readonly run: () => Promise<T>) {}

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

  #start(): Promise<T> {
    const running = this.run().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}
