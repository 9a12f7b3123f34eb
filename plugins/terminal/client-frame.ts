import type { TerminalSize } from 'busbar/api/containers'

/** What a frame of a client asks for. `malformed`: not JSON; `ignored`: JSON that asks for nothing we know, or for no possible size. */
type ClientFrame =
  | { readonly kind: 'input'; readonly data: Buffer }
  | { readonly kind: 'resize'; readonly size: TerminalSize }
  | { readonly kind: 'malformed' | 'ignored' }

/** More than any window has; programs make room for each character. */
const longestSide = 1000

export function readClientFrame(text: string): ClientFrame {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { kind: 'malformed' }
  }
  if (typeof value !== 'object' || value === null) return { kind: 'ignored' }
  const { type, data, cols, rows } = value as Readonly<Record<string, unknown>>
  if (type === 'input' && typeof data === 'string') return { kind: 'input', data: typed(data) }
  if (type === 'resize' && isSide(cols) && isSide(rows))
    return { kind: 'resize', size: { columns: cols, rows } }
  return { kind: 'ignored' }
}

const isSide = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 1 && (value as number) <= longestSide

const base64 = /^[A-Za-z0-9+/]*={0,2}$/

/** Base64 with all of its padding; anything else is text as it stands. */
const typed = (data: string): Buffer =>
  data.length % 4 === 0 && base64.test(data) ? Buffer.from(data, 'base64') : Buffer.from(data)
