import type { IncomingMessage } from 'node:http'

/**
 * Joins the chunks of an answer that one read of the connection brought: an application may write byte by byte. Each
 * chunk would be an event, a write and some hundred bytes of memory, and limits of buffers count what they hold. To be
 * called when the head of the answer has come.
 */
export function joinChunks(answer: IncomingMessage): void {
  const push = answer.push.bind(answer)
  let chunks: Buffer[] = []
  let bytes = 0
  const flush = (): void => {
    if (chunks.length === 0) return
    const joined = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bytes)
    chunks = []
    bytes = 0
    push(joined)
  }
  // Node's parser calls it: for all chunks of a read one after another, and with null at the end of the body.
  answer.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) {
      flush()
      return push(null)
    }
    if (chunks.length === 0) process.nextTick(flush)
    chunks.push(chunk)
    bytes += chunk.length
    return bytes + answer.readableLength < answer.readableHighWaterMark
  }
}
