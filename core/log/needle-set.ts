/** A half-open range of a text. */
export interface Span {
  readonly start: number
  readonly end: number
}

const tableSize = 4096

/** So that no place of a text is compared with more. What is longer is for a `PieceSet`. */
export const longestNeedle = 64

/** Needles that share the block by which they are found. */
interface Bucket {
  readonly sorted: readonly string[]
  /** By index: the longest of the others that it begins with, or -1. */
  readonly beginnings: readonly number[]
}

/**
 * Finds any of many strings in one pass (Wu and Manber, 1994, over blocks of two characters), so that
 * the cost of a line does not grow with the number of secrets. Needles have at least four characters.
 *
 * The same user may choose the secrets and write the text: what stands at one place of it is compared with the
 * needles of one bucket by binary search, and never further than `longestNeedle`.
 */
export class NeedleSet {
  readonly #shortest: number
  readonly #shift: Uint8Array | undefined
  readonly #byBlock = new Map<number, Bucket>()

  constructor(needles: readonly string[]) {
    const sorted = [...new Set(needles)].sort(byCodeUnits)
    this.#shortest = Math.min(
      sorted.reduce((least, { length }) => Math.min(least, length), Infinity),
      255
    )
    if (sorted.length === 0) return
    this.#shift = new Uint8Array(tableSize).fill(this.#shortest - 1)
    const byBlock = new Map<number, string[]>()
    for (const needle of sorted) {
      for (let at = 1; at < this.#shortest; at++) {
        const slot = block(needle, at)
        this.#shift[slot] = Math.min(this.#shift[slot] ?? 0, this.#shortest - 1 - at)
      }
      const slot = block(needle, this.#shortest - 1)
      const others = byBlock.get(slot)
      if (others === undefined) byBlock.set(slot, [needle])
      else others.push(needle)
    }
    for (const [slot, bucket] of byBlock)
      this.#byBlock.set(slot, { sorted: bucket, beginnings: beginningsIn(bucket) })
  }

  /** The leftmost match at or after `from`; the longest one where several start at the same place. */
  find(text: string, from = 0): Span | undefined {
    if (this.#shift === undefined) return undefined
    for (let at = from + this.#shortest - 1; at < text.length; ) {
      const slot = block(text, at)
      const skip = this.#shift[slot] ?? 0
      if (skip > 0) {
        at += skip
        continue
      }
      const start = at - this.#shortest + 1
      const bucket = this.#byBlock.get(slot)
      const length =
        bucket === undefined ? 0 : longestBeginning(bucket, text.slice(start, start + longestNeedle))
      if (length > 0) return { start, end: start + length }
      at++
    }
    return undefined
  }
}

const block = (text: string, at: number) =>
  ((text.charCodeAt(at - 1) * 33) ^ text.charCodeAt(at)) & (tableSize - 1)

const byCodeUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function beginningsIn(sorted: readonly string[]): number[] {
  const open: number[] = []
  return sorted.map((needle, index) => {
    while (open.length > 0 && !needle.startsWith(sorted[open.at(-1) ?? 0] ?? '')) open.pop()
    const beginning = open.at(-1) ?? -1
    open.push(index)
    return beginning
  })
}

/** How long the longest needle is that the text begins with; 0 without one. */
function longestBeginning({ sorted, beginnings }: Bucket, text: string): number {
  let low = 0
  for (let high = sorted.length; low < high; ) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] ?? '') <= text) low = middle + 1
    else high = middle
  }
  // All that the text begins with is a beginning of the last one that is not behind it in the order.
  let index = low - 1
  if (index < 0) return 0
  const common = commonLength(sorted[index] ?? '', text)
  while (index >= 0 && (sorted[index]?.length ?? 0) > common) index = beginnings[index] ?? -1
  return index < 0 ? 0 : (sorted[index]?.length ?? 0)
}

function commonLength(a: string, b: string): number {
  if (b.startsWith(a)) return a.length
  let length = 0
  // `a` ends later than `b`, or has another character before its end.
  while (length < b.length && a.charCodeAt(length) === b.charCodeAt(length)) length++
  return length
}
