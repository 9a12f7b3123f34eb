import { asksTerminal } from './asks-terminal.js'
import { EscapeReader } from './escape-reader.js'
import { TerminalModes } from './terminal-modes.js'

const firstCapacity = 4096
/** ENQ and BEL: what is shown again asks nothing and rings no bell. */
const silenced = [0x05, 0x07]

/** A screen to show to a terminal that may be in any state. */
interface Screen {
  readonly bytes: Buffer
  /** A program has the whole of it; it has to draw it itself. */
  readonly isAlternate: boolean
}

/**
 * The last part of what a program has written, by its place in all of it. What is too old is forgotten, but for the modes that it
 * has put the terminal into.
 */
export class Scrollback {
  #ring = Buffer.alloc(0)
  #start = 0
  #end = 0
  /** Of all that was forgotten. */
  readonly #reader = new EscapeReader()
  readonly #modes = new TerminalModes()

  constructor(private readonly capacity: number) {}

  /** The place of the first byte that is there. */
  get start(): number {
    return this.#start
  }

  /** The place behind the last one. */
  get end(): number {
    return this.#end
  }

  append(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; at += this.capacity)
      this.#append(bytes.subarray(at, at + this.capacity))
  }

  /** What is there from a place on, `most` bytes at most; to be used before anything is appended. */
  read(from: number, most: number): Buffer {
    const end = Math.min(from + most, this.#end)
    if (from >= end) return Buffer.alloc(0)
    const at = from % this.#ring.length
    return this.#ring.subarray(at, Math.min(at + end - from, this.#ring.length))
  }

  /** All that is there, as it is shown once more. */
  screen(): Screen {
    const reader = this.#reader.copy()
    const modes = this.#modes.copy()
    const pieces: Buffer[] = [Buffer.from(modes.sequences)]
    const bytes = Buffer.concat(this.#pieces(this.#start, this.#end))
    // The rest of a sequence or of a character whose beginning is gone is no text.
    let at = reader.isAtRest ? restOfCharacter(bytes, this.#start) : -1
    for (const { start, end, text, isOdd } of reader.read(bytes)) {
      modes.apply(text)
      if (at >= 0) pieces.push(quiet(bytes.subarray(at, Math.max(at, start))))
      if (start >= 0 && !isOdd && !asksTerminal(text)) pieces.push(bytes.subarray(start, end))
      at = end
    }
    if (at >= 0) pieces.push(quiet(bytes.subarray(at)))
    // Only now: what is left out may have stood between the two bytes of one.
    return { bytes: withoutWideControls(Buffer.concat(pieces)), isAlternate: modes.isAlternate }
  }

  /** No more than the capacity. */
  #append(bytes: Buffer): void {
    const needed = this.#end - this.#start + bytes.length
    if (needed > this.#ring.length && this.#ring.length < this.capacity) this.#grow(needed)
    if (needed > this.#ring.length) this.#forget(needed - this.#ring.length)
    const at = this.#end % this.#ring.length
    const fits = Math.min(bytes.length, this.#ring.length - at)
    bytes.copy(this.#ring, at, 0, fits)
    bytes.copy(this.#ring, 0, fits)
    this.#end += bytes.length
  }

  #grow(needed: number): void {
    let size = Math.max(firstCapacity, this.#ring.length)
    while (size < needed) size *= 2
    const ring = Buffer.alloc(Math.min(size, this.capacity))
    for (const [place, piece] of this.#placed()) {
      const at = place % ring.length
      const fits = Math.min(piece.length, ring.length - at)
      piece.copy(ring, at, 0, fits)
      piece.copy(ring, 0, fits)
    }
    this.#ring = ring
  }

  #forget(count: number): void {
    for (const piece of this.#pieces(this.#start, this.#start + count))
      for (const { text } of this.#reader.read(piece)) this.#modes.apply(text)
    this.#start += count
  }

  *#placed(): Generator<readonly [place: number, piece: Buffer], void> {
    let place = this.#start
    for (const piece of this.#pieces(this.#start, this.#end)) {
      yield [place, piece]
      place += piece.length
    }
  }

  /** In the order of their places: one, or two where the ring is gone around. */
  #pieces(from: number, to: number): Buffer[] {
    const pieces: Buffer[] = []
    for (let at = from; at < to; ) {
      const piece = this.read(at, to - at)
      pieces.push(piece)
      at += piece.length
    }
    return pieces
  }
}

function quiet(text: Buffer): Buffer {
  return silenced.some(byte => text.includes(byte))
    ? (text.filter(byte => !silenced.includes(byte)) as Buffer)
    : text
}

/**
 * With NUL, which does nothing, in the place of U+0080 to U+009F: to terminals they are escape sequences of one character (U+009B
 * is `ESC [`), with which nobody draws. Changes the bytes.
 */
function withoutWideControls(bytes: Buffer): Buffer {
  for (let at = bytes.indexOf(0xc2); at >= 0; at = bytes.indexOf(0xc2, at + 1)) {
    const next = bytes[at + 1] ?? 0
    if (next >= 0x80 && next <= 0x9f) bytes.fill(0, at, at + 2)
  }
  return bytes
}

/** How many bytes at the beginning belong to a character of UTF-8 whose first byte is gone. */
function restOfCharacter(bytes: Buffer, start: number): number {
  let count = 0
  while (start > 0 && count < 3 && ((bytes[count] ?? 0) & 0xc0) === 0x80) count++
  return count
}
