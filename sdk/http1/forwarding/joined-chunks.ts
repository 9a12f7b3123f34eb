import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { ByteTurns } from '../byte-turns.js'

/** A read that brings more of them takes some milliseconds, and those of many answers come in one turn. */
const manyChunks = 1_000

const waiting: Array<() => void> = []

/**
 * Joins the chunks of an answer that one read of the connection brought: an application may write byte by byte. Each
 * chunk would be an event, a write and some hundred bytes of memory, and limits of buffers count what they hold. After
 * a read of very many the answers take turns, one in each turn of the event loop; and all answers share what a turn hands
 * on, with the sockets that are joined. To be called when the head of the answer for `client` has come.
 */
export function joinChunks(answer: IncomingMessage, client: Socket): void {
  const push = answer.push.bind(answer)
  const turns = new ByteTurns(client)
  let chunks: Buffer[] = []
  let bytes = 0
  const flush = (): void => {
    if (chunks.length === 0) return
    const joined = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bytes)
    chunks = []
    bytes = 0
    push(joined)
  }
  const readHasEnded = (): void => {
    if (chunks.length >= manyChunks) {
      chunks = [Buffer.concat(chunks, bytes)]
      inNextTurn(flush)
    } else if (turns.isUsedUp(bytes)) turns.wait(flush)
    else flush()
  }
  // Node's parser calls it: for all chunks of a read one after another, and with null at the end of the body.
  answer.push = (chunk: Buffer | null): boolean => {
    if (chunk === null) {
      flush()
      return push(null)
    }
    if (chunks.length === 0) process.nextTick(readHasEnded)
    chunks.push(chunk)
    bytes += chunk.length
    // False until they are flushed: nothing more is read of the connection.
    return chunks.length < manyChunks && bytes + answer.readableLength < answer.readableHighWaterMark
  }
}

function inNextTurn(release: () => void): void {
  waiting.push(release)
  if (waiting.length === 1) setImmediate(releaseOne)
}

function releaseOne(): void {
  const release = waiting[0]
  try {
    release?.()
  } finally {
    waiting.shift()
    if (waiting.length > 0) setImmediate(releaseOne)
  }
}
