import { LineTimes } from './line-time.js'
import { LineIds, type LinePlace } from './log-id.js'

const first: LinePlace = { ms: 0, nanos: 0, ordinal: 0 }
const template = (place: LinePlace): string =>
  `id: ${new LineIds().of(place)}\ndata: ${new LineTimes().write(place)} `

export const lineHeadLength = template(first).length

const idAt = 'id: '.length
const timeAt = template(first).indexOf('data: ') + 'data: '.length
const hexDigits = Uint8Array.from(Buffer.from('0123456789abcdef'))
const zero = 0x30

/**
 * What stands before a line in a stream: its id and its time, as `LineIds` and `LineTimes` write them. It is kept as bytes of which most
 * are the same for the next line, and only the others are written.
 */
export class LineHead {
  readonly bytes = Buffer.from(template(first))
  #ms = 0
  #secondMs = 0
  #high = 0

  set({ ms, nanos, ordinal }: LinePlace): void {
    if (ms !== this.#ms) this.#setMs(ms)
    this.#hex(nanos >> 8, idAt + 15, 3)
    this.#hex(0x8000 | ((nanos & 0xff) << 6) | Math.floor(ordinal / 2 ** 48), idAt + 19, 4)
    const high = Math.floor(ordinal / 2 ** 24)
    if (high !== this.#high) this.#hex(high % 2 ** 24, idAt + 24, 6)
    this.#high = high
    this.#hex(ordinal % 2 ** 24, idAt + 30, 6)
    this.#decimal(nanos, timeAt + 23, 6)
  }

  #setMs(ms: number): void {
    this.#ms = ms
    this.#hex(Math.floor(ms / 2 ** 16), idAt, 8)
    this.#hex(ms % 2 ** 16, idAt + 9, 4)
    const secondMs = Math.floor(ms / 1000) * 1000
    if (secondMs !== this.#secondMs)
      this.bytes.write(new Date(secondMs).toISOString().slice(0, 19), timeAt, 'latin1')
    this.#secondMs = secondMs
    this.#decimal(ms - secondMs, timeAt + 20, 3)
  }

  #hex(value: number, at: number, digits: number): void {
    for (let left = value, n = at + digits - 1; n >= at; n--) {
      this.bytes[n] = hexDigits[left & 15] ?? 0
      left >>>= 4
    }
  }

  #decimal(value: number, at: number, digits: number): void {
    for (let left = value, n = at + digits - 1; n >= at; n--) {
      const rest = Math.floor(left / 10)
      this.bytes[n] = zero + left - rest * 10
      left = rest
    }
  }
}
