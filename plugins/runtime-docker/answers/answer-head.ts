/** How the end of a body is known: by its chunks, by its length, or by that of the connection. */
type Framing =
  | { readonly kind: 'chunked' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'close' }

/** What is needed of the head of an answer by HTTP/1.1. */
export interface AnswerHead {
  readonly status: number
  readonly framing: Framing
  /** Where the body begins. */
  readonly end: number
}

/** A longer one is none of an engine. */
const longestHead = 16 * 1024

const statusLine = /^HTTP\/1\.[01] ([1-9]\d\d)(?: |\r)/

/** Undefined while its end has not come. Answers that are announced (1xx) are passed over. Throws at what is no answer. */
export function readHead(bytes: Buffer): AnswerHead | undefined {
  for (let start = 0; ; ) {
    const stop = bytes.indexOf('\r\n\r\n', start, 'latin1')
    if (stop < 0) {
      if (bytes.length > longestHead) throw new Error('it sent a head without an end')
      return undefined
    }
    const text = bytes.toString('latin1', start, stop + 2)
    const status = Number(statusLine.exec(text)?.[1])
    if (Number.isNaN(status)) throw new Error('it sent no answer by HTTP')
    start = stop + 4
    if (status >= 200) return { status, framing: framingOf(status, text), end: start }
  }
}

function framingOf(status: number, head: string): Framing {
  if (status === 204 || status === 304) return { kind: 'length', bytes: 0 }
  let bytes: number | undefined
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon)).toLowerCase()
    const value = line.slice(colon + 1).trim()
    if (name === 'transfer-encoding' && value.toLowerCase() === 'chunked') return { kind: 'chunked' }
    if (name === 'content-length' && /^\d{1,15}$/.test(value)) bytes = Number(value)
  }
  return bytes === undefined ? { kind: 'close' } : { kind: 'length', bytes }
}
