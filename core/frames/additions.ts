/** What a plugin has put where it is everybody's: a listener of `process`, a subscriber of a channel. */
export interface Addition {
  put(): unknown
  takeAway(): unknown
  /** It will not be put again, and nothing needs to be remembered of it. */
  forgotten?(): void
}

/**
 * What a module of a third-party plugin, or one run of it, has put where it is everybody's. It is there while somebody holds
 * it. A module is evaluated once, however often its plugin is turned off and on again, so it comes back.
 */
export class Additions {
  readonly #all = new Set<Addition>()
  #holders = 0
  #hasEnded = false

  /** False once it has ended: then nothing is put. */
  add(addition: Addition): boolean {
    if (this.#hasEnded) return false
    this.#all.add(addition)
    if (this.#holders > 0) addition.put()
    return true
  }

  /** The plugin has taken it away itself. */
  forget(addition: Addition): void {
    this.#all.delete(addition)
  }

  get isHeld(): boolean {
    return this.#holders > 0
  }

  hold(): void {
    if (++this.#holders === 1) for (const addition of this.#all) addition.put()
  }

  release(): void {
    if (--this.#holders === 0) for (const addition of this.#all) addition.takeAway()
  }

  /** For what does not come back, as a run. */
  end(): void {
    this.#hasEnded = true
    for (const addition of this.#all) {
      addition.takeAway()
      addition.forgotten?.()
    }
    this.#all.clear()
  }
}

/** Of the latest runs, by plugin. */
const ofRuns = new Map<string, Additions>()

export const additionsOfRun = (plugin: string): Additions | undefined => ofRuns.get(plugin)

/** What the plugin adds from now on, wherever it is called, is of this run. */
export function setAdditionsOfRun(plugin: string, additions: Additions): void {
  ofRuns.set(plugin, additions)
}

/** By the file of the module: Node never forgets one, so its code does not add anything a second time. */
const ofModules = new Map<string, Additions>()

export function additionsOfModule(file: string): Additions {
  const known = ofModules.get(file) ?? new Additions()
  ofModules.set(file, known)
  return known
}
