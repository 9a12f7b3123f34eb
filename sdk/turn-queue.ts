/** A loop that waits for its turn. */
interface WaitingLoop {
  /** Loops with the same one count as one. */
  readonly owner: unknown
  /** Whether it has used up the turn that it had; it has waited for something else if not. */
  readonly hasUsedTurn: boolean
  readonly goOn: () => void
}

/**
 * Whose turn it is. Those that have only waited are before those that have used their turns up, which would make them
 * wait for each of their steps; one of each in turn, so that neither keeps the other waiting.
 */
export class TurnQueue {
  readonly #awake = new OwnersInTurn()
  readonly #busy = new OwnersInTurn()
  #wasAwake = false

  get isEmpty(): boolean {
    return this.#awake.isEmpty && this.#busy.isEmpty
  }

  add(loop: WaitingLoop): void {
    const queue = loop.hasUsedTurn ? this.#busy : this.#awake
    queue.add(loop)
  }

  /** Undefined when none waits. */
  take(): WaitingLoop | undefined {
    const [first, second] = this.#wasAwake ? [this.#busy, this.#awake] : [this.#awake, this.#busy]
    const loop = first.take() ?? second.take()
    this.#wasAwake = loop?.hasUsedTurn === false
    return loop
  }
}

/** The owners take turns, and so do the loops of each: many loops of one owner keep others waiting like one. */
class OwnersInTurn {
  /** With those first who have waited longest for a turn. */
  readonly #loops = new Map<unknown, WaitingLoop[]>()

  get isEmpty(): boolean {
    return this.#loops.size === 0
  }

  add(loop: WaitingLoop): void {
    const loops = this.#loops.get(loop.owner)
    if (loops === undefined) this.#loops.set(loop.owner, [loop])
    else loops.push(loop)
  }

  take(): WaitingLoop | undefined {
    for (const [owner, loops] of this.#loops) {
      const loop = loops.shift()
      this.#loops.delete(owner)
      if (loops.length > 0) this.#loops.set(owner, loops)
      return loop
    }
    return undefined
  }
}
