import type { Span } from './needle-set.js'

/** All pieces have this length; what is longer is looked for in several. */
const pieceLength = 64

const tableSize = 4096
const block = (text: string, at: number): number =>
  ((text.charCodeAt(at) * 33) ^ text.charCodeAt(at + 1)) & (tableSize - 1)

/** Pieces that cover the needle; the last two overlap. */
function* piecesOf(needle: string): Generator<string> {
  for (let at = 0; at + pieceLength < needle.length; at += pieceLength)
    yield needle.slice(at, at + pieceLength)
  yield needle.slice(-pieceLength)
}

/**
 * Long needles, added and removed one by one: that takes as long as they are, whatever else is there. A secret may
 * be tens of kilobytes, and there may be hundreds, all of somebody who wants it to take long.
 */
export class PieceSet {
  readonly #counts = new Map<string, number>()
  /** How many pieces begin with the characters of a block. */
  readonly #begins = new Uint32Array(tableSize)

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  /** Of `pieceLength` characters or more. */
  add(needle: string): void {
    for (const piece of piecesOf(needle)) {
      const count = this.#counts.get(piece) ?? 0
      this.#counts.set(piece, count + 1)
      if (count === 0) this.#note(piece, 1)
    }
  }

  remove(needle: string): void {
    for (const piece of piecesOf(needle)) {
      const count = this.#counts.get(piece) ?? 0
      if (count > 1) this.#counts.set(piece, count - 1)
      else if (this.#counts.delete(piece)) this.#note(piece, -1)
    }
  }

  /** The leftmost piece at or after `from`. */
  find(text: string, from = 0): Span | undefined {
    if (this.#counts.size === 0) return undefined
    for (let start = from; start + pieceLength <= text.length; start++) {
      if (this.#begins[block(text, start)] === 0) continue
      const end = start + pieceLength
      if (this.#counts.has(text.slice(start, end))) return { start, end }
    }
    return undefined
  }

  #note(piece: string, change: 1 | -1): void {
    const slot = block(piece, 0)
    this.#begins[slot] = (this.#begins[slot] ?? 0) + change
  }
}
