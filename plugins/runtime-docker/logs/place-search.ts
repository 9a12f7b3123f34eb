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

/** So many messages were asked for, and the first of them was of this time. */
interface Asked {
  readonly window: number
  readonly earliestMs: number
}

/** A question too many costs less than all that is sent a second time. */
const margin = 1.15
const growth = (window: number): number => (window < 4096 ? 4 : 1.5)

/**
 * How many messages to ask for when so many were too few. As fast as the container has written what lies between two questions, it has
 * written what lies between the first message and the place, whose time is `placeMs`; where there was one question, as fast as what was
 * read last (`aMs`, messages a millisecond), and where nothing was, as what has come until now.
 */
export function nextWindow(
  { window, earliestMs }: Asked,
  known: {
    readonly before: Asked | undefined
    readonly placeMs: number
    readonly nowMs: number
    readonly aMs?: number | undefined
  }
): number | 'all' {
  const { before, placeMs, nowMs } = known
  const betweenMs = before === undefined ? 0 : before.earliestMs - earliestMs
  const aMs =
    before !== undefined && betweenMs > 0
      ? (window - before.window) / betweenMs
      : (known.aMs ?? window / Math.max(1, nowMs - earliestMs))
  const needed = (window + aMs * (earliestMs - placeMs + disorderMs)) * margin
  const next = Math.ceil(Math.max(window * growth(window), needed))
  return next > largestWindow ? 'all' : next
}

/**
 * With how many to begin when so many were new before: while these were read, about as many were written, or none any more. What is too
 * few costs one further question, and says how many are needed; what is too many is read a second time.
 */
export const windowAfter = (count: number): number => Math.max(firstWindow, Math.ceil(count / 8))
