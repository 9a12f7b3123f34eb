import { type LogMessage, ownCopy } from './log-message.js'

/** A container that writes more in a second fills a file of its log in a few. */
const mostBytesASecond = 1024 * 1024
/** What the engine adds to a message when it keeps it. */
const addedBytes = 70
/** In this time no container fills a file of its log that is not thrown away in the next moment. */
const longestDelayMs = 250

/**
 * What can be believed of a log that is followed. Docker leaves out a file of a log where the next one is begun before it has come to
 * the end of the one before; before 23 (`isOld`) it tells what stands in a new file twice besides, whenever it begins one. What is asked
 * of it anew, by the place that was read last, is right; so a reader does that whenever it may be otherwise. Asked once too often,
 * nothing is lost but the time.
 */
export class FollowTrust {
  readonly #times: { stdout?: string; stderr?: string } = {}
  #bytes = 0
  #secondBegan: number
  #leastDelayMs = Number.POSITIVE_INFINITY

  constructor(
    private readonly nowMs: () => number,
    private readonly isOld: boolean
  ) {
    this.#secondBegan = nowMs()
  }

  /** How many of these, which have come just now, are what the container has written next. When not all are, the log is to be asked for anew. */
  believed(messages: readonly LogMessage[]): number {
    if (this.#isLate(messages)) return 0
    for (const [index, { stream, time, bytes }] of messages.entries()) {
      const before = this.#times[stream]
      // Also of the same time: it may be the next part of a long line, or the same part once more.
      if (before !== undefined && time <= before) return index
      this.#times[stream] = time
      this.#bytes += bytes + addedBytes
    }
    for (const stream of ['stdout', 'stderr'] as const) {
      const time = this.#times[stream]
      if (time !== undefined) this.#times[stream] = ownCopy(time)
    }
    return messages.length
  }

  /** Whether so much has come that what comes next is not to be believed. */
  get isTooMuch(): boolean {
    const now = this.nowMs()
    const isTooMuch = this.isOld && this.#bytes > mostBytesASecond
    if (now - this.#secondBegan > 1000) {
      this.#secondBegan = now
      this.#bytes = 0
    }
    return isTooMuch
  }

  /** The engine's clock may be another one: what counts is how much later than others they come. */
  #isLate(messages: readonly LogMessage[]): boolean {
    const [first, last] = [messages[0], messages.at(-1)]
    if (first === undefined || last === undefined) return false
    const now = this.nowMs()
    const delayMs = now - Date.parse(first.time)
    this.#leastDelayMs = Math.min(this.#leastDelayMs, delayMs, now - Date.parse(last.time))
    return delayMs - this.#leastDelayMs > longestDelayMs
  }
}

/** So much or less was new: whoever has written it does not write too much to be followed. */
export const isLittle = (messages: number, bytes: number): boolean =>
  bytes + messages * addedBytes <= mostBytesASecond / 4
