import type { Clock } from './kernel.js'

type Counted = ReadonlyArray<{ readonly total: number }>

/** Nobody checks the last digit of more. */
const exactUpTo = 10_000
const freshMs = 30_000
const longestMs = 5 * 60_000
const capacity = 200

interface Remembered {
  readonly counted: Counted
  readonly at: number
}

/**
 * Totals of lists that grow to millions of rows: to count those is to read each of them. Up to 10 000 they are counted when they are
 * asked for, and are exact. What is more is counted once for all who ask within half a minute; who asks later gets what is known,
 * while it is counted anew, unless it is older than five minutes.
 *
 *     await countedRows(page, rows, () => totals.of(key, () => db.sql('select count(*) as total …')))
 */
export class LargeTotals {
  readonly #known = new Map<string, Remembered>()
  readonly #underWay = new Map<string, Promise<Counted>>()

  constructor(private readonly clock: Pick<Clock, 'elapsed'>) {}

  /** `key`: whatever `count` depends on, the caller's reach too. Rejects with what `count` does. */
  async of(key: string, count: () => Promise<Counted>): Promise<Counted> {
    const known = this.#known.get(key)
    const age = known === undefined ? Number.POSITIVE_INFINITY : this.clock.elapsed() - known.at
    if (known === undefined || age > longestMs) return await this.#count(key, count)
    // It is asked again by the next who comes.
    if (age > freshMs) this.#count(key, count).catch(() => {})
    return known.counted
  }

  /** At a time, each is counted once, for those who wait for it as well. */
  #count(key: string, count: () => Promise<Counted>): Promise<Counted> {
    const underWay = this.#underWay.get(key)
    if (underWay !== undefined) return underWay
    const counting = this.#counted(key, count).finally(() => this.#underWay.delete(key))
    this.#underWay.set(key, counting)
    return counting
  }

  async #counted(key: string, count: () => Promise<Counted>): Promise<Counted> {
    const counted = await count()
    this.#known.delete(key)
    if ((counted[0]?.total ?? 0) > exactUpTo) {
      this.#known.set(key, { counted, at: this.clock.elapsed() })
      const [oldest] = this.#known.keys()
      if (this.#known.size > capacity && oldest !== undefined) this.#known.delete(oldest)
    }
    return counted
  }
}
