import type { Clock } from './kernel.js'

/** As long as anybody reads; what comes later is left out, and said to be. */
const longest = 256 * 1024

/** What a run of something did, for people to read: one JSON object a line, `time` and `message`. */
export class RunLog {
  #text: string
  #isFull = false

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly clean: (text: string) => string,
    before = ''
  ) {
    this.#text = before
  }

  get text(): string {
    return this.#text
  }

  say(message: string): void {
    if (this.#isFull) return
    this.#isFull = this.#text.length > longest
    const said = this.#isFull ? 'the log goes on, and is cut here' : this.clean(message)
    this.#text += `${JSON.stringify({ time: this.clock.now().toISOString(), message: said })}\n`
  }
}
