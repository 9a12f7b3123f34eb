import { TurnQueue } from './turn-queue.js'

const longestTurnMs = 10

const queue = new TurnQueue()
/** Who has gone on since the event loop turned last, if any. */
let current: Turns | undefined
let isTurning = false

/**
 * Lets others have their turn in a loop over values from outside: one that never waits would keep the event loop to
 * itself. While it `isOver`, `pass`. All such loops of the process share: in one turn of the event loop one of them goes
 * on, so that many of them are no worse for everybody else than one.
 *
 * Loops with the same `owner` (the id of a user, say) share the turns of one. Without it, a loop is on its own.
 */
export class Turns {
  #endsAt = performance.now() + longestTurnMs
  /** The first turn begins by itself, so it counts as used: a caller that makes loops again and again does not get ahead of others. */
  #isFirst = true
  readonly #owner: unknown

  constructor(owner?: string) {
    this.#owner = owner ?? this
  }

  /** Also after a wait for something else: a reader that wakes up queues. */
  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  /**
   * Queues with the other loops that wait, and resolves when this one's next turn begins: soon after a wait for
   * something else, and else when the others have had theirs.
   */
  async pass(): Promise<void> {
    await new Promise<void>(resolve => {
      queue.add({
        owner: this.#owner,
        hasUsedTurn: this.#isFirst || current === this,
        goOn: () => {
          current = this
          this.#isFirst = false
          resolve()
        }
      })
      if (!isTurning) setImmediate(resumeNext)
      isTurning = true
    })
    this.#endsAt = performance.now() + longestTurnMs
  }
}

/** What goes on does so before the next one: promises are settled between two calls of `setImmediate`. */
function resumeNext(): void {
  const next = queue.take()
  setImmediate(endTurn)
  isTurning = !queue.isEmpty
  if (isTurning) setImmediate(resumeNext)
  next?.goOn()
}

/** Before the next turn: a reader that has not queued by now waits for something else. */
function endTurn(): void {
  current = undefined
}
