/** Work that is done later unless `cancel` comes first. It keeps no process alive. */
export class Delayed {
  readonly #timers = new Set<NodeJS.Timeout>()

  after(ms: number, run: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      run()
    }, ms)
    timer.unref()
    this.#timers.add(timer)
  }

  cancel(): void {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#timers.clear()
  }
}
