/** Who waits for a change, and is woken at each: look again then. */
export class WaitingRoom {
  #waiting: Array<() => void> = []

  async wait(): Promise<void> {
    await new Promise<void>(resolve => {
      this.#waiting.push(resolve)
    })
  }

  wake(): void {
    const woken = this.#waiting
    this.#waiting = []
    for (const wake of woken) wake()
  }
}
