/** A half-open range of a text. */
export interface Span { readonly start: number, readonly end: number }

const tableSize = 4096

/**
 * Finds any of many strings in one pass (Wu and Manber, 1994, over blocks of two characters), so that
 * the cost of a line does not grow with the number of secrets. Needles have at least four characters.
 */
export class NeedleSet {
  readonly #shortest: number
  readonly #shift: Uint8Array | undefined
  readonly #byBlock = new Map<number, string[]>()

  constructor (needles: readonly string[]) {
    const sorted = [...needles].sort((a, b) => b.length - a.length)
    this.#shortest = Math.min(sorted.at(-1)?.length ?? 0, 255)
    if (sorted.length === 0) return
    this.#shift = new Uint8Array(tableSize).fill(this.#shortest - 1)
    for (const needle of sorted) {
      for (let at = 1; at < this.#shortest; at++) {
        const slot = block(needle, at)
        this.#shift[slot] = Math.min(this.#shift[slot] ?? 0, this.#shortest - 1 - at)
      }
      const slot = block(needle, this.#shortest - 1)
      this.#byBlock.set(slot, [...this.#byBlock.get(slot) ?? [], needle])
    }
  }

  /** The leftmost match at or after `from`; the longest one where several start at the same place. */
  find (text: string, from = 0): Span | undefined {
    if (this.#shift === undefined) return undefined
    for (let at = from + this.#shortest - 1; at < text.length;) {
      const slot = block(text, at)
      const skip = this.#shift[slot] ?? 0
      if (skip > 0) { at += skip; continue }
      const start = at - this.#shortest + 1
      const needle = this.#byBlock.get(slot)?.find(candidate => text.startsWith(candidate, start))
      if (needle !== undefined) return { start, end: start + needle.length }
      at++
    }
    return undefined
  }
}

const block = (text: string, at: number) =>
  (text.charCodeAt(at - 1) * 33 ^ text.charCodeAt(at)) & (tableSize - 1)
