/** A sleep that can be woken, for one sleeper at a time. To wake whoever does not sleep does nothing. */
export class Wakeable {
  #wake = (): void => {}

  wake(): void {
    this.#wake()
  }

  /** Resolves when it is woken, when the signal aborts, and after `ms` milliseconds where they are given. */
  async sleep(signal: AbortSignal, ms?: number): Promise<void> {
    await new Promise<void>(resolve => {
      const done = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        this.#wake = () => {}
        resolve()
      }
      const timer = ms === undefined ? undefined : setTimeout(done, ms)
      signal.addEventListener('abort', done)
      this.#wake = done
      if (signal.aborted) done()
    })
  }
}
