import { ReadBytes } from '../answers/read-bytes.js'
import { type LogMessage, readMessage } from './log-message.js'

const headerLength = 8
/** Longer pieces are kept by no log driver. */
const longestFrame = 16 * 1024 * 1024
const lineFeed = 0x0a
/** Of a terminal there are no frames, so nothing bounds a line. */
const longestTerminalLine = 64 * 1024
const none = Buffer.alloc(0)

/** What the engine sends of the log of a container, taken apart where it lies. What is not whole yet is kept, and nothing else. */
export interface LogSplitter {
  take(read: ReadBytes, start: number, end: number): void
  /** The messages that have become whole since. */
  messages(): LogMessage[]
  /** Nothing more comes: what is left is one too. */
  end(): void
}

export const logSplitter = (hasTerminal: boolean): LogSplitter =>
  hasTerminal ? new TerminalSplitter() : new FrameSplitter()

/** Each message has a header: one byte for the stream, three that are empty, four for its length. */
class FrameSplitter implements LogSplitter {
  #messages: LogMessage[] = []
  /** The beginning of a frame, with room for the rest of it once its length is known. */
  #frame = none
  #filled = 0

  /** Throws the engine's words where it says that it could not read on. */
  take(read: ReadBytes, start: number, end: number): void {
    let at = start
    while (this.#filled > 0 && at < end) at = this.#fill(read.bytes, at, end)
    while (at + headerLength <= end) {
      const next = frameEnd(read.bytes, at)
      if (next > end) break
      this.#add(read, at, next)
      at = next
    }
    if (at < end) this.#begin(read.bytes, at, end)
  }

  messages(): LogMessage[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  end(): void {}

  #begin(bytes: Buffer, at: number, end: number): void {
    const length = end - at < headerLength ? headerLength : frameEnd(bytes, at) - at
    this.#frame = Buffer.allocUnsafe(length)
    this.#filled = bytes.copy(this.#frame, 0, at, end)
  }

  /** Goes on with a frame that has begun; where its bytes end. */
  #fill(bytes: Buffer, at: number, end: number): number {
    const stop = Math.min(end, at + this.#frame.length - this.#filled)
    this.#filled += bytes.copy(this.#frame, this.#filled, at, stop)
    if (this.#filled < this.#frame.length) return stop
    const length = frameEnd(this.#frame, 0)
    if (length > this.#frame.length) {
      const header = this.#frame
      this.#frame = Buffer.allocUnsafe(length)
      header.copy(this.#frame)
      return stop
    }
    this.#add(new ReadBytes(this.#frame), 0, length)
    this.#frame = none
    this.#filled = 0
    return stop
  }

  #add(read: ReadBytes, at: number, end: number): void {
    const stream = read.bytes[at]
    if (stream === 3) throw new Error(read.bytes.toString('utf8', at + headerLength, end).trim())
    this.#messages.push(readMessage(stream === 2 ? 'stderr' : 'stdout', read, at + headerLength, end))
  }
}

function frameEnd(bytes: Buffer, at: number): number {
  const length = bytes.readUInt32BE(at + 4)
  if (length > longestFrame) throw new Error(`it sent a piece of ${length} bytes of output`)
  return at + headerLength + length
}

class TerminalSplitter implements LogSplitter {
  #messages: LogMessage[] = []
  #pieces: Buffer[] = []
  #length = 0

  take(read: ReadBytes, start: number, end: number): void {
    const bytes = read.bytes.subarray(0, end)
    let at = start
    for (let stop = bytes.indexOf(lineFeed, at); stop >= 0; stop = bytes.indexOf(lineFeed, at)) {
      if (this.#length === 0) this.#messages.push(readMessage('stdout', read, at, stop + 1))
      else {
        this.#keep(bytes, at, stop + 1)
        this.end()
      }
      at = stop + 1
    }
    if (at < end) this.#keep(bytes, at, end)
    if (this.#length > longestTerminalLine) this.end()
  }

  messages(): LogMessage[] {
    const messages = this.#messages
    this.#messages = []
    return messages
  }

  end(): void {
    if (this.#length === 0) return
    const whole = new ReadBytes(Buffer.concat(this.#pieces))
    this.#pieces = []
    this.#length = 0
    this.#messages.push(readMessage('stdout', whole, 0, whole.length))
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    this.#length += end - start
  }
}
