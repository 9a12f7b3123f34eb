/** Of the time, that counting files may take. */
const countingShare = 0.2

/** When files were counted, and whether that says anything of a disk that has gone short since. */
export class CountTimes {
  /** When the latest count began, also where they could not be counted. */
  #begunAt = Number.NEGATIVE_INFINITY
  #dueAt = 0
  /** Since the disk is short, or the last one was ended for that. */
  #shortSince: number | undefined

  noteShort(isShort: boolean): void {
    this.#shortSince = isShort ? (this.#shortSince ?? performance.now()) : undefined
  }

  get shortMs(): number {
    return this.#shortSince === undefined ? 0 : performance.now() - this.#shortSince
  }

  /** An older count says nothing of what was written since. */
  get isFresh(): boolean {
    return this.#begunAt >= (this.#shortSince ?? Number.NEGATIVE_INFINITY)
  }

  /** Above the floor, so that a disk that stays near it is not looked through all the time. */
  get isDue(): boolean {
    return performance.now() >= this.#dueAt
  }

  noteCount(begunAt: number): void {
    const now = performance.now()
    this.#begunAt = begunAt
    this.#dueAt = now + (now - begunAt) / countingShare
  }
}
