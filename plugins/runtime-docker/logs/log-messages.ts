import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { Turns } from 'busbar/sdk'
import { type LogMessage, readMessage } from './log-message.js'

const headerLength = 8
/** Longer pieces are kept by no log driver. */
const longestFrame = 16 * 1024 * 1024
const lineFeed = 0x0a
/** What comes in small pieces, one soon after the other, is taken together: to take one costs as much as many lines. */
const usualGatherMs = 4
const smallPiece = 16 * 1024
/** Of a terminal there are no frames, so nothing bounds a line. */
const longestTerminalLine = 64 * 1024

/**
 * What the engine sends of the log of a container, with times, as messages: all that has come at once, in the order in which the engine
 * keeps them. Rejects with the engine's words where it says in the stream that it could not read on.
 */
export async function* logMessages(
  stream: Readable,
  hasTerminal: boolean,
  gatherMs = usualGatherMs
): AsyncGenerator<LogMessage[]> {
  const turns = new Turns()
  const split = hasTerminal ? terminalMessages : framedMessages
  let pieces: Buffer[] = []
  let length = 0
  let needed = 1
  let cameAt = Number.NEGATIVE_INFINITY
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    pieces.push(chunk)
    length += chunk.length
    if (length < needed && !(hasTerminal && chunk.includes(lineFeed))) continue
    const bytes = pieces.length === 1 ? chunk : Buffer.concat(pieces)
    const { messages, read, next } = split(bytes)
    pieces = [bytes.subarray(read)]
    length = bytes.length - read
    needed = next
    if (messages.length > 0) yield messages
    const isTrickle = chunk.length < smallPiece && stream.readableLength === 0
    if (isTrickle && performance.now() - cameAt < gatherMs) await sleep(gatherMs)
    cameAt = performance.now()
    // Very much may have come already, and of that no step waits for anything.
    if (turns.isOver) await turns.pass()
  }
  if (hasTerminal && length > 0) yield [readMessage('stdout', Buffer.concat(pieces), 0, length)]
}

interface Split {
  readonly messages: LogMessage[]
  /** So many bytes; the rest is the beginning of a message. */
  readonly read: number
  /** With fewer bytes than that there is no further message. */
  readonly next: number
}

/** Each has a header: one byte for the stream, three that are empty, four for its length. */
function framedMessages(bytes: Buffer): Split {
  const messages: LogMessage[] = []
  let at = 0
  let next = headerLength
  while (at + headerLength <= bytes.length) {
    const length = bytes.readUInt32BE(at + 4)
    if (length > longestFrame) throw new Error(`it sent a piece of ${length} bytes of output`)
    const start = at + headerLength
    const end = start + length
    next = headerLength + length
    if (end > bytes.length) break
    if (bytes[at] === 3) throw new Error(bytes.toString('utf8', start, end).trim())
    messages.push(readMessage(bytes[at] === 2 ? 'stderr' : 'stdout', bytes, start, end))
    at = end
    next = headerLength
  }
  return { messages, read: at, next }
}

function terminalMessages(bytes: Buffer): Split {
  const messages: LogMessage[] = []
  let at = 0
  for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed, at)) {
    messages.push(readMessage('stdout', bytes, at, end + 1))
    at = end + 1
  }
  if (bytes.length - at > longestTerminalLine) {
    messages.push(readMessage('stdout', bytes, at, bytes.length))
    at = bytes.length
  }
  return { messages, read: at, next: longestTerminalLine + 1 }
}
