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

/**
 * A UUID (version 8) that says the place of a line, so that it is found by its id without an index of ids: 48 bits of milliseconds, 20
 * of nanoseconds, 54 of the ordinal, besides those of version and variant.
 */
export function idOf({ ms, nanos, ordinal }: LinePlace): string {
  const time = hex(ms, 12)
  const middle = 0x8000 | ((nanos & 0xff) << 6) | Math.floor(ordinal / lowBits)
  return `${time.slice(0, 8)}-${time.slice(8)}-8${hex(nanos >> 8, 3)}-${hex(middle, 4)}-${hex(ordinal % lowBits, 12)}`
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
