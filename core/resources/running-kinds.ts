import type { ResourceRecord } from '../declarations/records.js'

/** A declared kind and the run of its plugin that answers for it. */
export interface RunningKind {
  readonly record: ResourceRecord
  /** Of the plugin. */
  readonly schema: string
  readonly self: object
}

interface Given extends RunningKind {
  readonly by: object
}

/** The kinds of resources of the plugins that run. */
export class RunningKinds {
  readonly #kinds = new Map<string, Given>()

  /** `by` is the run that gives them; a newer run of the same plugin takes the place of an older one. */
  add(by: object, kinds: readonly RunningKind[]): void {
    for (const kind of kinds) this.#kinds.set(kind.record.kind, { ...kind, by })
  }

  /** Takes back what a run has given, but for what another has taken the place of. */
  withdraw(by: object): void {
    for (const [name, kind] of this.#kinds) if (kind.by === by) this.#kinds.delete(name)
  }

  get(kind: string): RunningKind | undefined {
    return this.#kinds.get(kind)
  }

  all(): RunningKind[] {
    return [...this.#kinds.values()]
  }

  /** Those whose resources lie in one of this kind and have a removal of their own. */
  childrenOf(kind: string): RunningKind[] {
    return [...this.#kinds.values()].filter(({ record }) => hasParent(record, kind))
  }
}

export const hasParent = ({ parents, removal }: ResourceRecord, kind: string): boolean =>
  removal !== undefined && parents[kind] !== undefined
