/** Containers that were restarted to see what comes back to the disk, as far as it decides who is next. */
export interface Restarted {
  /** Since the disk was last seen with room. */
  readonly lately: ReadonlySet<string>
  /** Not long ago, and nothing came back. */
  readonly inVain: ReadonlySet<string>
  /** Not long ago, and much came back. */
  readonly gaveBack: ReadonlySet<string>
}

export const noneRestarted: Restarted = { lately: new Set(), inVain: new Set(), gaveBack: new Set() }

/** Who makes a disk short again and again has others restarted no more often than this, as long as nobody is to lose files. */
const sparedMs = 6 * 3_600_000

export class Restarts {
  readonly #lately = new Set<string>()
  readonly #inVainAt = new Map<string, number>()
  readonly #gaveBackAt = new Map<string, number>()

  noteAsked(id: string): void {
    this.#lately.add(id)
  }

  noteBack(id: string, isMuch: boolean, at: number): void {
    this.#inVainAt.delete(id)
    if (isMuch) this.#gaveBackAt.set(id, at)
    else this.#inVainAt.set(id, at)
  }

  noteRoom(): void {
    this.#lately.clear()
  }

  at(now: number): Restarted {
    for (const known of [this.#inVainAt, this.#gaveBackAt])
      for (const [id, at] of known) if (now - at >= sparedMs) known.delete(id)
    return {
      lately: this.#lately,
      inVain: new Set(this.#inVainAt.keys()),
      gaveBack: new Set(this.#gaveBackAt.keys())
    }
  }
}
