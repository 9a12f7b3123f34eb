const longestTurnMs = 10

const waiting: Array<() => void> = []

/**
 * Lets others have their turn in a loop over somebody else's values: one that never waits would keep the event loop to
 * itself. While it `isOver`, `pass`. All such loops of the process share: in one turn of the event loop one of them goes
 * on, so that many of them are no worse for everybody else than one.
 */
export class Turns {
  #endsAt = performance.now() + longestTurnMs

  /** Also after a wait for something else: whoever wakes up queues. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /** Queues behind the other loops that wait, and resolves when this one's next turn begins. */
  async pass(): Promise<void> {
    await new Promise<void>(resolve => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(letOneGoOn)
    })
    this.#endsAt = performance.now() + longestTurnMs
  }
}

/** What goes on does so before the next one: promises are settled between two calls of `setImmediate`. */
function letOneGoOn(): void {
  const goOn = waiting.shift()
  if (waiting.length > 0) setImmediate(letOneGoOn)
  goOn?.()
}
