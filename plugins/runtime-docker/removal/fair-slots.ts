/** So much work at once, of which no owner has more than one; those that wait have their turns by owner. */
export class FairSlots {
  readonly #free: number[]
  readonly #busy = new Set<string>()
  /** The owner who has waited longest for a turn comes first. */
  readonly #waiting = new Map<string, Array<(slot: number) => void>>()

  constructor(most: number) {
    this.#free = Array.from({ length: most }, (_, slot) => slot)
  }

  /** `work` is told its number, which nothing else has meanwhile. Settles like it. */
  async run<T>(owner: string, work: (slot: number) => Promise<T>): Promise<T> {
    const slot = await new Promise<number>(resolve => {
      const own = this.#waiting.get(owner)
      if (own === undefined) this.#waiting.set(owner, [resolve])
      else own.push(resolve)
      this.#next()
    })
    try {
      return await work(slot)
    } finally {
      this.#free.unshift(slot)
      this.#busy.delete(owner)
      this.#next()
    }
  }

  #next(): void {
    for (const [owner, own] of this.#waiting) {
      if (this.#busy.has(owner)) continue
      const slot = this.#free.shift()
      if (slot === undefined) return
      const [begin, ...others] = own
      this.#waiting.delete(owner)
      if (others.length > 0) this.#waiting.set(owner, others)
      this.#busy.add(owner)
      begin?.(slot)
    }
  }
}
