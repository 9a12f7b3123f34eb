/**
 * Answers remembered by id, in two generations: when the young one is full it becomes the old one, and
 * what is not asked for until the next turn is forgotten. A hit is one look-up in a map and moves nothing.
 *
 * Undefined answers are not remembered: an id that does not exist yet may exist in a moment, and guesses
 * must not push out what is used. Nor is a read that was under way when its id was forgotten: it may be stale.
 */
export class LookupCache<T> {
  #young = new Map<string, T>()
  #old = new Map<string, T>()
  readonly #reading = new Map<string, Promise<T | undefined>>()

  constructor(readonly capacity: number) {}

  get(id: string): T | undefined {
    const recent = this.#young.get(id)
    if (recent !== undefined) return recent
    const known = this.#old.get(id)
    if (known === undefined) return undefined
    this.#old.delete(id)
    this.#put(id, known)
    return known
  }

  /** Runs `read` once for all who ask for the same id meanwhile. */
  load(id: string, read: () => Promise<T | undefined>): Promise<T | undefined> {
    const running = this.#reading.get(id)
    if (running !== undefined) return running
    const reading = read()
      .then(value => {
        if (value !== undefined && this.#reading.get(id) === reading) this.#put(id, value)
        return value
      })
      .finally(() => {
        if (this.#reading.get(id) === reading) this.#reading.delete(id)
      })
    this.#reading.set(id, reading)
    return reading
  }

  forget(id: string): void {
    for (const map of [this.#young, this.#old, this.#reading]) map.delete(id)
  }

  /** Forgets all answers that match, and what is being read, as it may. */
  forgetWhere(matches: (value: T) => boolean): void {
    this.#reading.clear()
    for (const generation of [this.#young, this.#old]) {
      for (const [id, value] of generation) if (matches(value)) generation.delete(id)
    }
  }

  clear(): void {
    for (const map of [this.#young, this.#old, this.#reading]) map.clear()
  }

  #put(id: string, value: T): void {
    if (this.#young.size >= this.capacity / 2) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(id, value)
  }
}
