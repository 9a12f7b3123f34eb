/** One whose turn has come; its owner gets the place back at its end. */
interface Turn {
  readonly owner: string
  readonly id: string
}

/** How many turns there are at a time. */
interface FairQueueLimits {
  readonly most: number
  readonly maxPerOwner: number
}

/**
 * The owners take turns, each with what it has waiting in the order in which that was added. One that
 * has many waiting, or such as take long, keeps the others waiting for one turn of each at most.
 */
export class FairQueue {
  /** By owner, with those first who have waited longest for a turn. */
  readonly #waiting = new Map<string, string[]>()
  /** By owner. */
  readonly #underWay = new Map<string, number>()
  /** What waits or is under way. */
  readonly #ids = new Set<string>()
  #total = 0

  constructor(private readonly limits: FairQueueLimits) {}

  /** Unless it waits already, or is under way. */
  add({ owner, id }: Turn): void {
    if (this.#ids.has(id)) return
    this.#ids.add(id)
    const waiting = this.#waiting.get(owner)
    if (waiting === undefined) this.#waiting.set(owner, [id])
    else waiting.push(id)
  }

  /** Undefined while none may begin. */
  take(): Turn | undefined {
    if (this.#total >= this.limits.most) return undefined
    for (const [owner, waiting] of this.#waiting) {
      const underWay = this.#underWay.get(owner) ?? 0
      if (underWay >= this.limits.maxPerOwner) continue
      const [id = '', ...rest] = waiting
      this.#waiting.delete(owner)
      if (rest.length > 0) this.#waiting.set(owner, rest)
      this.#underWay.set(owner, underWay + 1)
      this.#total++
      return { owner, id }
    }
    return undefined
  }

  end({ owner, id }: Turn): void {
    const left = (this.#underWay.get(owner) ?? 0) - 1
    if (left > 0) this.#underWay.set(owner, left)
    else this.#underWay.delete(owner)
    this.#ids.delete(id)
    this.#total--
  }
}
