import type { SignedInCaller, Turns } from 'busbar/sdk'
import type { AccessChange } from '../changes/access-change.js'
import { AccessRounds } from '../changes/access-rounds.js'

/** Something that stays open in a project, such as an event stream. */
interface Watched {
  readonly caller: SignedInCaller
  /** Asks again; never throws. */
  readonly look: () => void
}

/** What is open, by the project that it was let into. */
export class AccessWatch {
  readonly #watched = new Map<string, Set<Watched>>()
  readonly #rounds = new AccessRounds((change, turns) => this.#round(change, turns))

  /** How many projects something is open in. */
  get projects(): number {
    return this.#watched.size
  }

  /** Calls `look` after each change that may concern the caller in that project; returns how to stop. */
  watch(caller: SignedInCaller, project: string, look: () => void): () => void {
    const watched = { caller, look }
    const here = this.#watched.get(project) ?? new Set()
    this.#watched.set(project, here.add(watched))
    return () => {
      here.delete(watched)
      if (here.size === 0 && this.#watched.get(project) === here) this.#watched.delete(project)
    }
  }

  after(change: AccessChange): void {
    this.#rounds.after(change)
  }

  async #round(change: AccessChange, turns: Turns): Promise<void> {
    const projects = change.kind === 'project' ? [change.id] : [...this.#watched.keys()]
    for (const project of projects) {
      for (const { caller, look } of this.#watched.get(project) ?? []) {
        if (turns.isOver) await turns.pass()
        if (change.kind !== 'user' || caller.user.id === change.id) look()
      }
    }
  }
}
