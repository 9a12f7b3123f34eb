import type { LogMessage } from './log-message.js'

const spanMs = 1000
/** Of fewer than that nothing follows. */
const fewest = 100

/** How fast a container has written what was read of it last, by the times of the messages themselves. */
export class LogPace {
  #beganMs = Number.NaN
  #count = 0
  #aMs: number | undefined

  /** Messages a millisecond; undefined where it has written little. */
  get aMs(): number | undefined {
    return this.#aMs
  }

  note(messages: ReadonlyArray<Pick<LogMessage, 'time'>>): void {
    const [first, last] = [messages[0], messages.at(-1)]
    if (first === undefined || last === undefined) return
    const endMs = Date.parse(last.time)
    if (!(endMs - this.#beganMs <= spanMs)) {
      this.#beganMs = Date.parse(first.time)
      this.#count = 0
    }
    this.#count += messages.length
    this.#aMs = this.#count < fewest ? undefined : this.#count / Math.max(1, endMs - this.#beganMs)
  }
}
