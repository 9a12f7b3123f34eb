import type { IgnorePattern, Place } from './ignore-patterns.js'

const bitsOfWord = 32

/** What is known of a directory, from which what is in it is decided. */
export interface Trail {
  readonly isIgnored: boolean
  /** The places at which the patterns stand after this path, a bit each. */
  readonly standing: Int32Array
  /** The patterns that have matched the path or a directory above it. */
  readonly matched: Uint8Array
}

/**
 * Decides by an ignore file, as the docker command does, name by name from the root: what matches a
 * directory matches what is in it, and the last pattern that matches decides.
 *
 * All patterns are one automaton whose places are bits, so a character costs one operation for 32 places and
 * none for those that are out of the running: no pattern can make it take longer than its length.
 */
export class IgnoreMatcher {
  readonly root: Trail
  /** Words of bits that were looked at so far: the work done. */
  steps = 0
  readonly #patterns: readonly IgnorePattern[]
  readonly #places: readonly Place[]
  readonly #ends: readonly number[]
  /** Code points at which a range of some pattern begins, or has just ended. */
  readonly #bounds: readonly number[]
  readonly #words: number
  /** By interval of `#bounds`: the places that a character of it leads on from. */
  readonly #leading: Int32Array[] = []
  readonly #passing: Readonly<Record<'slash' | 'newline' | 'other', Int32Array>>
  readonly #skipOnArrival: Int32Array
  readonly #skipAlways: Int32Array

  constructor(patterns: readonly IgnorePattern[]) {
    this.#patterns = patterns
    const end: Place = { ranges: [], isNegated: false, passes: 'nothing', isOptional: 'never' }
    this.#places = patterns.flatMap(({ places }) => [...places, end])
    let length = 0
    this.#ends = patterns.map(({ places }) => {
      length += places.length + 1
      return length - 1
    })
    this.#words = Math.ceil(this.#places.length / bitsOfWord)
    this.#bounds = [
      ...new Set(this.#places.flatMap(({ ranges }) => ranges.flatMap(([first, last]) => [first, last + 1])))
    ].sort((a, b) => a - b)
    this.#passing = {
      slash: this.#where(({ passes }) => passes === 'line' || passes === 'all'),
      newline: this.#where(({ passes }) => passes === 'name' || passes === 'all'),
      other: this.#where(({ passes }) => passes !== 'nothing')
    }
    this.#skipOnArrival = this.#where(({ isOptional }) => isOptional !== 'never')
    this.#skipAlways = this.#where(({ isOptional }) => isOptional === 'always')
    const starts = new Int32Array(this.#words)
    for (const start of [0, ...this.#ends.slice(0, -1).map(last => last + 1)])
      if (this.#words > 0) setBit(starts, start)
    this.root = { isIgnored: false, standing: this.#settle(starts), matched: new Uint8Array(patterns.length) }
  }

  /** A name in the root, or in the directory of which `parent` is known. */
  enter(parent: Trail, name: string): Trail {
    let standing = parent.standing
    for (const character of parent === this.root ? name : `/${name}`)
      standing = this.#advance(standing, character.codePointAt(0) ?? 0)
    const matched = new Uint8Array(this.#patterns.length)
    let isIgnored = false
    for (const [index, { isException }] of this.#patterns.entries()) {
      // A pattern that would change nothing is passed over, and so not remembered for what is below.
      if (
        parent.matched[index] !== 1 &&
        (isException !== isIgnored || !hasBit(standing, this.#ends[index] ?? 0))
      )
        continue
      matched[index] = 1
      isIgnored = !isException
    }
    return { isIgnored, standing, matched }
  }

  #advance(standing: Int32Array, code: number): Int32Array {
    const leading = this.#leadingFrom(code)
    const passing = this.#passing[code === 0x2f ? 'slash' : code === 0x0a ? 'newline' : 'other']
    const next = new Int32Array(this.#words)
    let carry = 0
    for (let word = 0; word < this.#words; word++) {
      const here = standing[word] ?? 0
      if (here === 0 && carry === 0) continue
      this.steps++
      const left = here & (leading[word] ?? 0)
      const stayed = here & (passing[word] ?? 0)
      const skipped = stayed & (this.#skipAlways[word] ?? 0)
      const arrived = this.#follow(((left | skipped) << 1) | carry, word)
      next[word] = arrived | stayed
      carry = (left | skipped | (arrived & (this.#skipOnArrival[word] ?? 0))) >>> 31
    }
    return next
  }

  /** The places that can be gone on to at once; there are never more than two in a row. */
  #follow(arrived: number, word: number): number {
    const skip = this.#skipOnArrival[word] ?? 0
    const once = arrived | ((arrived & skip) << 1)
    return once | ((once & skip) << 1)
  }

  #settle(starts: Int32Array): Int32Array {
    let carry = 0
    return starts.map((bits, word) => {
      const arrived = this.#follow(bits | carry, word)
      carry = (arrived & (this.#skipOnArrival[word] ?? 0)) >>> 31
      return arrived
    })
  }

  #leadingFrom(code: number): Int32Array {
    let low = 0
    for (let high = this.#bounds.length; low < high; ) {
      const middle = (low + high) >>> 1
      if ((this.#bounds[middle] ?? 0) <= code) low = middle + 1
      else high = middle
    }
    const known = this.#leading[low]
    if (known !== undefined) return known
    const places = this.#where(
      ({ ranges, isNegated }) => ranges.some(([first, last]) => first <= code && code <= last) !== isNegated
    )
    this.#leading[low] = places
    return places
  }

  #where(holds: (place: Place) => boolean): Int32Array {
    const bits = new Int32Array(this.#words)
    for (const [index, place] of this.#places.entries()) if (holds(place)) setBit(bits, index)
    return bits
  }
}

function setBit(bits: Int32Array, index: number): void {
  bits[index >>> 5] = (bits[index >>> 5] ?? 0) | (1 << (index & 31))
}

const hasBit = (bits: Int32Array, index: number): boolean =>
  ((bits[index >>> 5] ?? 0) & (1 << (index & 31))) !== 0
