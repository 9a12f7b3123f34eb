interface Outcome<T> {
  /** Of the latest call that has ended; undefined before the first. */
  readonly value: T | undefined
  /** That is not of now. */
  readonly isLate: boolean
}

/** One that was late is left alone for so many times as long as it took. */
const restTimes = 20

/**
 * Asks the engine for what may take it long: it goes on when nobody waits any more. So there is never a second call
 * beside the first, and an answer that was late is not asked for again at once.
 */
export class UnhurriedCall<T> {
  #running: Promise<void> | undefined
  #value: T | undefined
  #error: unknown
  #isSlow = false
  #askedAt = 0
  #restsUntil = Number.NEGATIVE_INFINITY

  constructor(private readonly run: () => Promise<T>) {}

  /** Whether it was late the last time. */
  get isSlow(): boolean {
    return this.#isSlow
  }

  get askedAt(): number {
    return this.#askedAt
  }

  get latest(): Outcome<T> {
    return { value: this.#value, isLate: true }
  }

  /** Rejects when the call does, if that is in time. */
  async within(ms: number): Promise<Outcome<T>> {
    if (this.#running !== undefined || performance.now() < this.#restsUntil) return this.latest
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<true>(resolve => {
      timer = setTimeout(() => resolve(true), ms)
    })
    const isLate = await Promise.race([this.#start(ms).then(() => false), late])
    clearTimeout(timer)
    this.#isSlow = isLate
    if (isLate) return this.latest
    if (this.#error !== undefined) throw this.#error
    return { value: this.#value, isLate: false }
  }

  #start(ms: number): Promise<void> {
    const begunAt = performance.now()
    this.#askedAt = begunAt
    this.#error = undefined
    const running = this.run()
      .then(
        value => {
          this.#value = value
        },
        (error: unknown) => {
          this.#error = error
        }
      )
      .then(() => {
        const tookMs = performance.now() - begunAt
        if (tookMs > ms) this.#restsUntil = performance.now() + tookMs * restTimes
        this.#running = undefined
      })
    this.#running = running
    return running
  }
}
