import { isUuid } from 'busbar/sdk'

/** The place of a line: its time, and behind which others of all lines it was kept. */
export interface LinePlace {
  /** Milliseconds since 1970. */
  readonly ms: number
  /** Beyond the millisecond: 0 to 999 999. */
  readonly nanos: number
  /** Below 2^53. */
  readonly ordinal: number
}

const lowBits = 2 ** 48
const lowHalf = 2 ** 24

/**
 * A UUID (version 8) that says the place of a line, so that it is found by its id without an index of ids: 48 bits of milliseconds, 20
 * of nanoseconds, 54 of the ordinal, besides those of version and variant.
 */
export const idOf = (place: LinePlace): string => new LineIds().of(place)

/** Writes ids of lines, of which most follow each other: what two have in common is written once. */
export class LineIds {
  #ms = -1
  #time = ''
  #high = -1
  #highText = ''

  of({ ms, nanos, ordinal }: LinePlace): string {
    if (ms !== this.#ms) {
      this.#ms = ms
      const time = hex(ms, 12)
      this.#time = `${time.slice(0, 8)}-${time.slice(8)}-8`
    }
    const high = Math.floor(ordinal / lowHalf)
    if (high !== this.#high) {
      this.#high = high
      this.#highText = hex(high % lowHalf, 6)
    }
    const middle = 0x8000 | ((nanos & 0xff) << 6) | Math.floor(ordinal / lowBits)
    return `${this.#time}${hex(nanos >> 8, 3)}-${middle.toString(16)}-${this.#highText}${hex(ordinal % lowHalf, 6)}`
  }
}

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0')

/** Undefined for what is no id of a line. */
export function placeOf(id: string | undefined): LinePlace | undefined {
  if (id === undefined || !isUuid(id) || id[14] !== '8') return undefined
  const middle = Number.parseInt(id.slice(19, 23), 16)
  const nanos = Number.parseInt(id.slice(15, 18), 16) * 256 + ((middle >> 6) & 0xff)
  const ordinal = (middle & 0x3f) * lowBits + Number.parseInt(id.slice(24), 16)
  return middle >> 14 === 2 && nanos < 1_000_000 && Number.isSafeInteger(ordinal)
    ? { ms: Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16), nanos, ordinal }
    : undefined
}
