import type { LinePlace } from './log-id.js'

/** Negative when `a` comes first: the latest first, and of one time the one that was kept last. */
export const byPlace = (a: LinePlace, b: LinePlace): number =>
  b.ms - a.ms || b.nanos - a.nanos || b.ordinal - a.ordinal

/**
 * Puts lines into their order that come in batches, each with nothing in it that is later than the latest of the batch before: a line is given
 * out as soon as none can come that stands before it.
 */
export class HistoryOrder<T extends LinePlace> {
  #held: T[] = []

  /** Lines in any order. What comes later has nothing from after `latestMs`. */
  add(lines: readonly T[], latestMs: number): T[] {
    this.#held = this.#held.concat(lines).sort(byPlace)
    const end = this.#held.findIndex(({ ms }) => ms <= latestMs)
    return this.#held.splice(0, end < 0 ? this.#held.length : end)
  }

  /** Nothing more comes. */
  rest(): T[] {
    return this.#held.splice(0)
  }
}
