const atOnce = 16
/** An engine that has not answered by then is busy with something else, or has nothing to tell. */
const longestMs = 100

/** When the platform starts, all containers are followed at once: an engine is asked for so many of them at a time. */
export class OpeningSlots {
  #taken = 0
  #waiting: Array<() => void> = []

  /** Resolves when it is one's turn, with what is to be called when the answer has come; it counts as come after a moment. */
  async take(): Promise<() => void> {
    while (this.#taken >= atOnce)
      await new Promise<void>(resolve => {
        this.#waiting.push(resolve)
      })
    this.#taken++
    let isTaken = true
    const giveBack = (): void => {
      if (!isTaken) return
      isTaken = false
      clearTimeout(timer)
      this.#taken--
      this.#waiting.shift()?.()
    }
    const timer = setTimeout(giveBack, longestMs)
    return giveBack
  }
}
