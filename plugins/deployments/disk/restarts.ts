/** Containers that were restarted to see what comes back to the disk, as far as it decides who is next. */
export interface Restarted {
  /** Since the disk was last seen with room. */
  readonly lately: ReadonlySet<string>
  /** Not long ago, and nothing came back. */
  readonly inVain: ReadonlySet<string>
  /** Much has come back of them before. */
  readonly gaveBack: ReadonlySet<string>
}

export const noneRestarted: Restarted = { lately: new Set(), inVain: new Set(), gaveBack: new Set() }

/** Who makes a disk short again and again has others restarted no more often than this, as long as nobody is to lose files. */
const sparedMs = 6 * 3_600_000

export class Restarts {
  readonly #lately = new Set<string>()
  readonly #inVainAt = new Map<string, number>()
  readonly #gaveBack = new Set<string>()

  noteAsked(id: string): void {
    this.#lately.add(id)
  }

  noteBack(id: string, isMuch: boolean, at: number): void {
    if (isMuch) this.#gaveBack.add(id)
    else this.#inVainAt.set(id, at)
  }

  noteRoom(): void {
    this.#lately.clear()
  }

  at(now: number): Restarted {
    for (const [id, at] of this.#inVainAt) if (now - at >= sparedMs) this.#inVainAt.delete(id)
    return { lately: this.#lately, inVain: new Set(this.#inVainAt.keys()), gaveBack: this.#gaveBack }
  }
}
