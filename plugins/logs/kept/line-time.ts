/** A time as it is kept, of which a `Date` has no more than the milliseconds. */
export interface LineTime {
  /** Since 1970. */
  readonly ms: number
  /** Beyond the millisecond: 0 to 999 999. */
  readonly nanos: number
}

const secondLength = '2026-01-02T03:04:05'.length
const zero = 0x30

/** Reads and writes times of lines, of which most follow each other in one second. */
export class LineTimes {
  #second = ''
  #secondMs = 0

  /** `2026-01-02T03:04:05.678901234Z`. */
  read(text: string): LineTime {
    if (this.#second === '' || !text.startsWith(this.#second)) {
      this.#second = text.slice(0, secondLength)
      this.#secondMs = Date.parse(`${this.#second}Z`)
    }
    let beyond = 0
    // A digit each: to make a number of a part of a text takes several times as long.
    for (let at = secondLength + 1; at < secondLength + 10; at++)
      beyond = beyond * 10 + text.charCodeAt(at) - zero
    const ms = Math.floor(beyond / 1_000_000)
    return { ms: this.#secondMs + ms, nanos: beyond - ms * 1_000_000 }
  }

  write({ ms, nanos }: LineTime): string {
    const secondMs = Math.floor(ms / 1000) * 1000
    if (secondMs !== this.#secondMs || this.#second === '') {
      this.#secondMs = secondMs
      this.#second = new Date(secondMs).toISOString().slice(0, 19)
    }
    const beyond = (ms - secondMs) * 1_000_000 + nanos
    return `${this.#second}.${String(beyond).padStart(9, '0')}Z`
  }
}
