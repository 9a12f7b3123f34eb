import type { LogMessage } from './log-message.js'
import type { LogPlace } from './log-place.js'

/**
 * What a message is to somebody who has read up to a place:
 *
 * - `known`: read already
 * - `new`: it and all that follow are new
 * - `first`: the same, and what followed the place is not there any more
 * - `too-late`: the place is before the first message that was asked for
 */
type Finding = 'known' | 'new' | 'first' | 'too-late'

/** The two streams are kept out of the order of their times by less than this: each waits for the other's write. */
const disorderMs = 20

/** Looks for a place in the log of a container, of which the last messages are read, or all that there are. */
export class PlaceSearch {
  #isFound = false
  #isBegun = false
  #same = 0

  constructor(
    private readonly place: LogPlace,
    private readonly isWhole: boolean
  ) {}

  /** Whether what comes next is new. */
  get isFound(): boolean {
    return this.#isFound
  }

  look({ stream, time }: Pick<LogMessage, 'stream' | 'time'>): Finding {
    if (this.#isFound) return 'new'
    const { last, latest } = this.place
    const sought = this.place[last]
    if (sought === undefined) throw new Error('a place without a message')
    const isBegun = this.#isBegun
    this.#isBegun = true
    // Only where it begins before all messages of that time can these be counted.
    if (!isBegun && !this.isWhole && Date.parse(time) >= Date.parse(sought.time) - disorderMs)
      return 'too-late'
    if (stream === last && time === sought.time) {
      this.#same++
      if (this.#same === sought.count) this.#isFound = true
      return 'known'
    }
    if (time <= latest) return 'known'
    // All that was read is earlier than this: the engine has thrown away what was read last.
    if (!this.isWhole) return 'too-late'
    this.#isFound = true
    return 'first'
  }
}

/** How many of the last messages are asked for at first: a container that was quiet has written no more since. */
export const firstWindow = 16
/** More than that, and all are asked for. */
const largestWindow = 200_000

/**
 * How many messages to ask for when so many were too few. `earliestMs` is the time of the first of them, `placeMs` that of the place:
 * as much will have been written in the time between as later.
 */
export function nextWindow(
  window: number,
  times: { readonly earliestMs: number; readonly placeMs: number; readonly nowMs: number }
): number | 'all' {
  const seenMs = Math.max(1, times.nowMs - times.earliestMs)
  const neededMs = times.nowMs - times.placeMs + disorderMs
  const next = Math.max(window * 4, Math.ceil((window * neededMs * 1.25) / seenMs))
  return next > largestWindow ? 'all' : next
}
