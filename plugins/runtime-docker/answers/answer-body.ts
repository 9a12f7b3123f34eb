import type { AnswerHead } from './answer-head.js'
import type { ReadBytes } from './read-bytes.js'

/** Is given what of some bytes belongs to a body. */
export type TakeBytes = (read: ReadBytes, start: number, end: number) => void

const carriageReturn = 0x0d
const lineFeed = 0x0a
/** Of a chunk; more is none of an engine's. */
const mostDigits = 12

/** What comes next. */
type Next = 'size' | 'size-end' | 'data' | 'data-end' | 'trailer' | 'nothing'

/**
 * Finds the body in what comes of an answer, where it lies: nothing is copied. An engine sends each line of a log as a chunk of its own,
 * and what Node's parser makes of each costs more than all that is done with a line.
 */
export class AnswerBody {
  #next: Next
  /** Bytes of the chunk, or of the body, that have not come yet. */
  #left = 0
  #digits = 0
  #isLineEmpty = true
  readonly #isChunked: boolean
  readonly #endsWithConnection: boolean

  constructor({ framing }: Pick<AnswerHead, 'framing'>) {
    this.#isChunked = framing.kind === 'chunked'
    this.#endsWithConnection = framing.kind === 'close'
    this.#left = framing.kind === 'length' ? framing.bytes : framing.kind === 'close' ? Infinity : 0
    this.#next = this.#isChunked ? 'size' : this.#left === 0 ? 'nothing' : 'data'
  }

  /** All of it has come. */
  get isOver(): boolean {
    return this.#next === 'nothing'
  }

  /** Where the connection ends now, nothing is missing. */
  get mayEnd(): boolean {
    return this.isOver || this.#endsWithConnection
  }

  /** Throws at what is no chunk. What comes behind the end is none of it. */
  read(read: ReadBytes, start: number, take: TakeBytes): void {
    const { bytes, length } = read
    for (let at = start; at < length && this.#next !== 'nothing'; ) {
      if (this.#next === 'data') {
        const stop = this.#left < length - at ? at + this.#left : length
        take(read, at, stop)
        this.#left -= stop - at
        if (this.#left === 0) this.#next = this.#isChunked ? 'data-end' : 'nothing'
        at = stop
      } else this.#readMark(bytes[at++] ?? 0)
    }
  }

  /** A byte of what stands around chunks. */
  #readMark(byte: number): void {
    switch (this.#next) {
      case 'size':
        if (this.#digits > 0 && digitOf(byte) < 0) {
          this.#next = 'size-end'
          this.#readMark(byte)
          return
        }
        if (digitOf(byte) < 0 || this.#digits === mostDigits)
          throw new Error('it sent no chunk where one was due')
        this.#left = this.#left * 16 + digitOf(byte)
        this.#digits++
        return
      case 'size-end':
        // Until there, an extension may stand, which says nothing to anybody.
        if (byte !== lineFeed) return
        this.#digits = 0
        this.#isLineEmpty = true
        this.#next = this.#left === 0 ? 'trailer' : 'data'
        return
      case 'data-end':
        if (byte === lineFeed) this.#next = 'size'
        else if (byte !== carriageReturn) throw new Error('it sent a chunk that is longer than it says')
        return
      default:
        if (byte === lineFeed && this.#isLineEmpty) this.#next = 'nothing'
        else if (byte !== carriageReturn) this.#isLineEmpty = byte === lineFeed
    }
  }
}

/** What a hexadecimal digit says; below 0 where it is none. */
function digitOf(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  const letter = byte | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}
