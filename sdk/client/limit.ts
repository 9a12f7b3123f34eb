/**
 * A signal that aborts after a time, or with another one. `AbortSignal.any` of a timeout does the same until Node.js
 * collects it as garbage, which it may before the time is over.
 */
export class Limit {
  readonly #controller = new AbortController()
  readonly #timer: ReturnType<typeof setTimeout>
  readonly #stop = (): void => {
    this.#controller.abort(this.outer?.reason)
  }
  /** Whether the time was over first. */
  isOver = false

  constructor(
    ms: number,
    private readonly outer: AbortSignal | undefined
  ) {
    this.#timer = setTimeout(() => {
      this.isOver = true
      this.#controller.abort(new Error(`that took longer than ${ms / 1000} s`))
    }, ms)
    if (outer?.aborted === true) this.#stop()
    outer?.addEventListener('abort', this.#stop, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** To be called when nothing waits any more. */
  end(): void {
    clearTimeout(this.#timer)
    this.outer?.removeEventListener('abort', this.#stop)
  }
}
