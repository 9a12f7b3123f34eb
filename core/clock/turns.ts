import { setImmediate as others } from 'node:timers/promises'

const longestTurnMs = 10

/**
 * Lets others have their turn in a loop over somebody else's values: one that never waits would keep the
 * event loop to itself. While it `isOver`, `pass`.
 */
export class Turns {
  #endsAt = performance.now() + longestTurnMs

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  async pass(): Promise<void> {
    await others()
    this.#endsAt = performance.now() + longestTurnMs
  }
}

/** The same values; others have their turn between them. */
export async function* inTurns<T>(values: AsyncIterable<T>): AsyncGenerator<T> {
  const turns = new Turns()
  for await (const value of values) {
    if (turns.isOver) await turns.pass()
    yield value
  }
}
