/** Callers that wait until there is room, in the order in which they have come. */
export class WaitingRoom {
  #waiting: Array<() => void> = []
  #isLooking = false
  #isClosed = false

  constructor(readonly hasRoom: () => boolean) {}

  /** Resolves when there is room and those before have gone on, at once where nobody waits; never rejects. */
  async enter(): Promise<void> {
    if (this.#isClosed || (this.#waiting.length === 0 && this.hasRoom())) return
    await new Promise<void>(resolve => {
      this.#waiting.push(resolve)
    })
  }

  /** There may be room now. One goes on in a turn of the event loop, and may use all of it up. */
  look(): void {
    if (this.#isLooking || this.#waiting.length === 0) return
    this.#isLooking = true
    setImmediate(() => {
      this.#isLooking = false
      if (this.#isClosed || !this.hasRoom()) return
      this.#waiting.shift()?.()
      this.look()
    })
  }

  /** Nobody waits any more. */
  close(): void {
    this.#isClosed = true
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
