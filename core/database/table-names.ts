import { isCatalog, type LockWait, type SeenWait, tableNamesText } from './lock-waits.js'
import type { Session } from './session.js'

const mostKnown = 1_000

/** Adds names to waits. Kept, as they are asked from the catalogs, which may be what is locked; then none is asked. */
export class TableNames {
  /** By id; null: it is no table. */
  readonly #known = new Map<number, string | null>()

  constructor(private readonly session: Session) {}

  async added(waits: readonly SeenWait[]): Promise<readonly LockWait[]> {
    const relations = waits.flatMap(wait => wait.relations ?? [])
    if (!relations.some(isCatalog)) await this.#learn(relations.filter(one => !this.#known.has(one)))
    return waits.map(({ relations, ...wait }) => ({ ...wait, table: this.#nameOf(relations ?? []) }))
  }

  #nameOf(relations: readonly number[]): string | null {
    if (relations.some(isCatalog)) return 'system catalogs'
    return relations.flatMap(one => this.#known.get(one) ?? []).sort()[0] ?? null
  }

  async #learn(relations: readonly number[]): Promise<void> {
    if (relations.length === 0) return
    if (this.#known.size > mostKnown) this.#known.clear()
    // Without a name is better than without the wait.
    const rows = await this.session
      .query<{ oid: number; name: string }>(tableNamesText, [[...new Set(relations)]])
      .catch(() => undefined)
    if (rows === undefined) return
    for (const relation of relations) this.#known.set(relation, null)
    for (const { oid, name } of rows) this.#known.set(oid, name)
  }
}
