import { isUuid } from 'busbar/sdk'
import type { TracePlace } from './trace-filter.js'

const timeDigits = 12
const positionDigits = 15

/** Time and position of a request as a UUID of version 8, which is what a client gives back to get the page behind it. */
export function cursorOf({ recordedAt, position }: TracePlace): string {
  const time = recordedAt.getTime().toString(16).padStart(timeDigits, '0')
  const place = position.toString(16).padStart(positionDigits, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-8000-8${place.slice(0, 3)}-${place.slice(3)}`
}

/** Undefined for what is none. */
export function readCursor(cursor: string): TracePlace | undefined {
  if (!isUuid(cursor)) return undefined
  const digits = cursor.replaceAll('-', '')
  return {
    recordedAt: new Date(Number.parseInt(digits.slice(0, timeDigits), 16)),
    // No row has one beyond what a number can say.
    position: Math.min(Number.parseInt(digits.slice(-positionDigits), 16), Number.MAX_SAFE_INTEGER)
  }
}
