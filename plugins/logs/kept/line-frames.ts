import { linesOf } from './chunk.js'
import { LineHead, lineHeadLength } from './line-head.js'
import type { KeptChunk } from './log-store.js'

/** A reader is given so much at once, for which its connection holds it until it has been sent. */
const givenAtOnce = 16 * 1024
/** Bytes that a character takes at most. */
const widest = 3
const lineFeed = 0x0a

/** Lines that are given at once, as server-sent events: written once, however many readers there are. */
export interface Given {
  readonly bytes: Uint8Array
  /** The ordinal behind the last of them. */
  readonly end: number
}

/** Where they are written, one chunk at a time. */
const shared = Buffer.allocUnsafeSlow(128 * 1024)

/** Without those lines that the reader has. */
export function framesOf(chunk: KeptChunk, from: number): readonly Given[] {
  const head = new LineHead()
  const given: Given[] = []
  let { ordinal } = chunk
  let out = shared
  let at = 0
  const give = (): void => {
    if (at > 0) given.push({ bytes: Buffer.from(out.subarray(0, at)), end: ordinal })
    out = shared
    at = 0
  }
  // What would end the line of a frame begins another line of it.
  const hasReturns = chunk.text.includes('\r')
  for (const { ms, nanos, message } of linesOf(chunk)) {
    if (ordinal >= from) {
      const data = hasReturns ? message.replaceAll('\r', '\ndata: ') : message
      const most = lineHeadLength + data.length * widest + 2
      if (at + most > out.length) give()
      if (most > out.length) out = Buffer.allocUnsafe(most)
      head.set({ ms, nanos, ordinal })
      at += head.bytes.copy(out, at)
      at += out.write(data, at)
      out[at++] = lineFeed
      out[at++] = lineFeed
    }
    ordinal++
    if (at >= givenAtOnce) give()
  }
  give()
  return given
}
