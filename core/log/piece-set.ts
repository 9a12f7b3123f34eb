import type { Span } from './needle-set.js'

/** All pieces have this length; what is longer is looked for in several. */
const pieceLength = 64

const tableSize = 4096
const block = (text: string, at: number): number =>
  ((text.charCodeAt(at) * 33) ^ text.charCodeAt(at + 1)) & (tableSize - 1)

/** Every text is looked through, and most hold no piece: of this many places where one may begin, one look rules out all. */
const stride = 8

/** Pieces that cover the needle; the last two overlap. */
function* piecesOf(needle: string): Generator<string> {
  for (let at = 0; at + pieceLength < needle.length; at += pieceLength)
    yield needle.slice(at, at + pieceLength)
  yield needle.slice(-pieceLength)
}

/**
 * Long needles, added and removed one by one: that takes as long as they are, whatever else is there. A secret may
 * be tens of kilobytes, and there may be hundreds, chosen so that it takes long.
 */
export class PieceSet {
  readonly #counts = new Map<string, number>()
  /** How many pieces begin with the characters of a block. */
  readonly #begins = new Uint32Array(tableSize)
  /** How many blocks among the first `stride` of a piece. */
  readonly #within = new Uint32Array(tableSize)

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
    const last = text.length - pieceLength
    for (let first = from; first <= last; first += stride) {
      const next = first + stride
      // A piece that begins in between reaches as far as that.
      if (this.#within[block(text, next - 1)] === 0) continue
      for (let start = first; start < next && start <= last; start++) {
        if (this.#begins[block(text, start)] === 0) continue
        const end = start + pieceLength
        if (this.#counts.has(text.slice(start, end))) return { start, end }
      }
    }
    return undefined
  }

  #note(piece: string, change: 1 | -1): void {
    step(this.#begins, block(piece, 0), change)
    for (let at = 0; at < stride; at++) step(this.#within, block(piece, at), change)
  }
}

function step(table: Uint32Array, slot: number, change: 1 | -1): void {
  table[slot] = (table[slot] ?? 0) + change
}
