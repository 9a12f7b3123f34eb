import type { LockWait } from './lock-waits.js'

/** A wait that counts. */
interface Counted<Whose> {
  readonly wait: LockWait
  /** Whose connection is behind it: all of a plugin count as one. */
  readonly whose: Whose
  readonly limitMs: number
}

interface Due<Whose> {
  readonly wait: LockWait
  readonly whose: Whose
  /** How often this connection has been due, with this time. */
  readonly times: number
}

interface Remembered {
  look: number
}
/** How long one transaction has been waiting because of one. */
interface Waited extends Remembered {
  forMs: number
  seenAt: number
}
interface Ended extends Remembered {
  times: number
  /** How long the waiting had taken by then. */
  atMs: number
}

/** Looks in a row for which it is remembered: between two of those that keep it waiting in turn, a transaction waits for neither. */
export const rememberedLooks = 4

/**
 * How long transactions have been waiting because of one plugin, whichever of its connections and transactions it is in turn, and
 * which of its connections are to be ended for that: beyond the limit each that is behind the wait, and again after as long again
 * when it still is.
 */
export class WaitingTime<Whose> {
  readonly #waited = new Map<Whose, Map<string, Waited>>()
  readonly #ended = new Map<string, Ended>()
  #looks = 0

  /** `mostMs`: what one look counts at most, as what has happened while this process did nothing is not known. */
  constructor(private readonly mostMs: number) {}

  note(counted: readonly Counted<Whose>[], now: number): readonly Due<Whose>[] {
    this.#looks++
    const due: Due<Whose>[] = []
    const told = new Set<string>()
    for (const { wait, whose, limitMs } of counted) {
      const { forMs } = this.#count(wait, whose, now)
      const key = `${wait.blocker} ${wait.began}`
      const ended = this.#ended.get(key)
      if (ended !== undefined) ended.look = this.#looks
      const isDue = forMs >= limitMs && (ended === undefined || forMs >= ended.atMs + limitMs)
      if (!isDue || told.has(key)) continue
      told.add(key)
      const times = (ended?.times ?? 0) + 1
      this.#ended.set(key, { times, atMs: forMs, look: this.#looks })
      due.push({ wait, whose, times })
    }
    this.#forget()
    return due
  }

  clear(): void {
    this.#waited.clear()
    this.#ended.clear()
  }

  #count({ waiting, waitingSince }: LockWait, whose: Whose, now: number): Waited {
    const byWaiting = this.#waited.get(whose) ?? new Map<string, Waited>()
    this.#waited.set(whose, byWaiting)
    const key = `${waiting} ${waitingSince}`
    const entry = byWaiting.get(key) ?? { forMs: 0, seenAt: now, look: this.#looks }
    // Once for each look, however many of them are before it.
    entry.forMs += Math.min(now - entry.seenAt, this.mostMs)
    entry.seenAt = now
    entry.look = this.#looks
    byWaiting.set(key, entry)
    return entry
  }

  #forget(): void {
    for (const [whose, byWaiting] of this.#waited) {
      this.#forgetOld(byWaiting)
      if (byWaiting.size === 0) this.#waited.delete(whose)
    }
    this.#forgetOld(this.#ended)
  }

  #forgetOld(entries: Map<string, Remembered>): void {
    for (const [key, { look }] of entries) if (look <= this.#looks - rememberedLooks) entries.delete(key)
  }
}
