import type { Readable } from 'node:stream'
import { Turns } from 'busbar/sdk'
import { UnfinishedAnswer } from '../whole-answers.js'

/** A part of a JSON text: an element of its first array on a path, or a simple value outside of these. */
export interface JsonRow {
  /** The names of the objects that it lies in: `Images`, `ImageUsage.Items`; empty for a text that is an array. */
  readonly path: string
  readonly value: unknown
}

/** Images may say megabytes of themselves, and a list repeats it; a row that is longer is left out. */
export const longestRowBytes = 8 * 2 ** 20

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a
const openBracket = 0x5b
const closeBracket = 0x5d
const openBrace = 0x7b
const closeBrace = 0x7d
const isSpace = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/**
 * Cuts a JSON text into its rows as it comes, so that neither the text nor all of its values are ever held as a whole: an
 * engine with thousands of containers answers in megabytes.
 */
export class RowScanner {
  /** The names of the objects that are open outside of a row; null for one whose members have none yet. */
  readonly #names: Array<string | null> = []
  #isInArray = false
  /** The next text is the name of a member. */
  #isName = false
  #isOver = false
  readonly #captured: Capture

  constructor(longest = longestRowBytes) {
    this.#captured = new Capture(longest)
  }

  /** How many rows were too long. */
  get leftOut(): number {
    return this.#captured.leftOut
  }

  /** Throws where it is no JSON. */
  *write(chunk: Buffer): Generator<JsonRow> {
    for (let at = 0; at < chunk.length; ) {
      if (this.#captured.isOpen) {
        at = this.#captured.take(chunk, at)
        if (!this.#captured.isOpen) yield* this.#captureEnded()
      } else at = this.#structure(chunk, at)
    }
  }

  /** Throws where the text did not come to its end. */
  *end(): Generator<JsonRow> {
    if (this.#captured.isOpen) {
      this.#captured.endOfText()
      yield* this.#captureEnded()
    }
    if (!this.#isOver) throw new UnfinishedAnswer()
  }

  #structure(chunk: Buffer, at: number): number {
    const byte = chunk[at] ?? 0
    if (isSpace(byte)) return at + 1
    if (this.#isOver) throw new UnfinishedAnswer()
    switch (byte) {
      case comma:
        this.#isName = !this.#isInArray
        return at + 1
      case colon:
        this.#isName = false
        return at + 1
      case openBrace:
        if (this.#isInArray) break
        this.#names.push(null)
        this.#isName = true
        return at + 1
      case openBracket:
        if (this.#isInArray) break
        this.#isInArray = true
        return at + 1
      case closeBrace:
        this.#names.pop()
        this.#isOver = this.#names.length === 0
        return at + 1
      case closeBracket:
        this.#isInArray = false
        this.#isOver = this.#names.length === 0
        return at + 1
    }
    this.#captured.open(byte)
    return at
  }

  *#captureEnded(): Generator<JsonRow> {
    const found = this.#captured.value()
    if (this.#isName && !this.#isInArray) {
      this.#names[this.#names.length - 1] = String(found?.value)
      return
    }
    if (this.#names.length === 0 && !this.#isInArray) this.#isOver = true
    if (found !== undefined) yield { path: this.#names.join('.'), value: found.value }
  }
}

/** One value of the text, from its first byte to its last. */
class Capture {
  #kind: 'none' | 'simple' | 'text' | 'nested' = 'none'
  #pieces: Buffer[] = []
  #length = 0
  #depth = 0
  #isInText = false
  #isEscaped = false
  leftOut = 0

  constructor(private readonly longest: number) {}

  get isOpen(): boolean {
    return this.#kind !== 'none'
  }

  open(first: number): void {
    this.#kind = first === quote ? 'text' : first === openBrace || first === openBracket ? 'nested' : 'simple'
    this.#pieces = []
    this.#length = 0
    this.#depth = 0
    this.#isInText = false
    this.#isEscaped = false
  }

  /** Takes what of the chunk belongs to it; where the rest begins. */
  take(chunk: Buffer, from: number): number {
    const end = this.#endIn(chunk, from)
    this.#keep(chunk.subarray(from, end))
    return end
  }

  /** A number ends with the text. */
  endOfText(): void {
    if (this.#kind !== 'simple') throw new UnfinishedAnswer()
    this.#kind = 'none'
  }

  /** Undefined where it was too long. */
  value(): { readonly value: unknown } | undefined {
    const pieces = this.#pieces
    this.#pieces = []
    if (this.#length > this.longest) {
      this.leftOut++
      return undefined
    }
    try {
      return { value: JSON.parse(Buffer.concat(pieces).toString()) }
    } catch {
      throw new UnfinishedAnswer()
    }
  }

  #keep(piece: Buffer): void {
    this.#length += piece.length
    if (this.#length > this.longest) this.#pieces = []
    else if (piece.length > 0) this.#pieces.push(piece)
  }

  #endIn(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]
      if (this.#isInText) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === backslash) this.#isEscaped = true
        else if (byte === quote) {
          this.#isInText = false
          if (this.#kind === 'text') return this.#close(at + 1)
        }
      } else if (byte === quote) this.#isInText = true
      else if (this.#kind === 'simple') {
        if (byte === comma || byte === closeBracket || byte === closeBrace || isSpace(byte ?? 0))
          return this.#close(at)
      } else if (byte === openBrace || byte === openBracket) this.#depth++
      else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#depth === 0) return this.#close(at + 1)
      }
    }
    return chunk.length
  }

  #close(end: number): number {
    this.#kind = 'none'
    return end
  }
}

/** The rows of a stream, in turns with other work. `onEnd` is told how many were too long. Fails where the text is cut off. */
export async function* jsonRows(
  stream: Readable,
  onEnd: (leftOut: number) => void = () => {}
): AsyncGenerator<JsonRow> {
  const scanner = new RowScanner()
  const turns = new Turns()
  for await (const chunk of stream as AsyncIterable<Buffer>)
    for (const row of scanner.write(chunk)) {
      if (turns.isOver) await turns.pass()
      yield row
    }
  yield* scanner.end()
  onEnd(scanner.leftOut)
}
