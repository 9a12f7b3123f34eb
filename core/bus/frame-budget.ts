/** A page that comes back subscribes to everything at once: a thousand channels, twice. */
const atOnce = 2_000
/** More than any client has a use for, and little work for us. */
const perSecond = 50

/** How many frames of one socket are read, so that no client keeps the others from their turn. */
export class FrameBudget {
  #left = atOnce
  #filledAtMs: number

  constructor(nowMs: number) {
    this.#filledAtMs = nowMs
  }

  /** One frame more. How long nothing is to be read then, in milliseconds: 0 while there is room for more. */
  spend(nowMs: number): number {
    const gained = ((nowMs - this.#filledAtMs) * perSecond) / 1000
    this.#filledAtMs = nowMs
    // What came in one piece with the last frame that had room is read all the same, and waited for longer.
    this.#left = Math.min(atOnce, this.#left + Math.max(0, gained)) - 1
    return this.#left > 0 ? 0 : Math.ceil(((1 - this.#left) * 1000) / perSecond)
  }
}
