const windowMs = 1_000
/** So many are logged one by one before that. */
const burst = 5

interface Window {
  told: number
  withheld: number
  last: Error
}

/** Tells of the first few errors of each owner at once, and then once in a second of the last, with the number of all. */
export class RepeatedErrors {
  readonly #windows = new Map<string | undefined, Window>()

  constructor(private readonly tell: (owner: string | undefined, error: Error, times: number) => void) {}

  note(owner: string | undefined, error: Error): void {
    const window = this.#windows.get(owner) ?? this.#open(owner, error, 0)
    if (window.told < burst) {
      window.told++
      this.tell(owner, error, 1)
      return
    }
    window.withheld++
    window.last = error
  }

  #open(owner: string | undefined, error: Error, told: number): Window {
    const window: Window = { told, withheld: 0, last: error }
    this.#windows.set(owner, window)
    setTimeout(() => {
      this.#windows.delete(owner)
      if (window.withheld === 0) return
      this.#open(owner, window.last, burst)
      this.tell(owner, window.last, window.withheld)
    }, windowMs).unref()
    return window
  }
}
