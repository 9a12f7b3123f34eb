import type { Tx } from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import type { Statements } from '../database/statements.js'
import type { RunningKind } from './running-kinds.js'

/** A row, whatever else is in it. */
interface ResourceRow {
  readonly id: string
}

/** The rows of one kind of resource. Table and columns are those that its plugin declares, checked when they were recorded. */
export class ResourceTable {
  readonly #name: string
  readonly #parents: Readonly<Record<string, string>>
  readonly #kind: string
  readonly #label: string | undefined
  readonly #isMarkable: boolean
  readonly #database: Pick<Statements, 'query'>
  /** Columns besides the id and those of what it is in. */
  readonly #further: readonly string[]

  constructor(
    postgres: Pick<Postgres, 'onTablesOf'>,
    { record: { plugin, kind, table, parents, name, removal }, schema }: RunningKind
  ) {
    this.#database = postgres.onTablesOf(plugin, schema)
    this.#name = `"${schema}"."${table}"`
    this.#parents = parents
    this.#kind = kind
    this.#label = name
    this.#isMarkable = removal !== undefined
    const further = [name, removal?.turnsBy, removal === undefined ? undefined : 'deleting_at']
    this.#further = further.filter(column => column !== undefined)
  }

  /** Rejects when the table lacks something that was declared. */
  async check(): Promise<void> {
    const columns = ['id', ...Object.values(this.#parents), ...this.#further].map(column => `"${column}"`)
    try {
      await this.#database.query(`select ${columns.join(', ')} from ${this.#name} limit 0`)
    } catch (error) {
      throw new Error(`resource ${this.#kind}: ${(error as Error).message}`, { cause: error })
    }
  }

  /** By kind, the ids of what it is in; undefined when it does not exist, or, of those that are there for users, is being removed. */
  async parentsOf(
    id: string,
    { tx, visible = false }: { readonly tx?: Tx | undefined; readonly visible?: boolean } = {}
  ): Promise<Readonly<Record<string, string>> | undefined> {
    const alive = visible && this.#isMarkable ? 'and deleting_at is null' : ''
    const columns = Object.entries(this.#parents).map(([kind, column]) => `'${kind}', "${column}"`)
    const [row] = await this.#database.query<{ parents: Record<string, string> }>(
      `select json_strip_nulls(json_build_object(${columns.join(', ')})) as parents from ${this.#name} where id = $1 ${alive}`,
      [id],
      tx
    )
    return row?.parents
  }

  /** The value of one column, as text. */
  async valueOf(id: string, column: string, tx?: Tx): Promise<string | undefined> {
    const [row] = await this.#database.query<{ value: string | null }>(
      `select "${column}"::text as value from ${this.#name} where id = $1`,
      [id],
      tx
    )
    return row?.value ?? undefined
  }

  async namesOf(ids: readonly string[]): Promise<Array<{ id: string; name: string }>> {
    if (this.#label === undefined || ids.length === 0) return []
    return await this.#database.query(
      `select id, "${this.#label}"::text as name from ${this.#name} where id = any($1) and "${this.#label}" is not null`,
      [[...ids]]
    )
  }

  /** Marks one, and those of the same kind that lie in it; false when it does not exist or is marked already. */
  async mark(id: string, now: Date, tx: Tx): Promise<boolean> {
    const own = this.#parents[this.#kind]
    const rows = await this.#database.query<ResourceRow>(
      `update ${this.#name} set deleting_at = $2
      where (id = $1 ${own === undefined ? '' : `or "${own}" = $1`}) and deleting_at is null returning id`,
      [id, now],
      tx
    )
    return rows.some(row => row.id === id)
  }

  /** Marks all that lie in what is being removed, and answers every one that is marked. */
  async markWithin(parent: { readonly kind: string; readonly id: string }, now: Date): Promise<string[]> {
    const column = this.#parents[parent.kind]
    if (column === undefined) return []
    await this.#database.query(
      `update ${this.#name} set deleting_at = $2 where "${column}" = $1 and deleting_at is null`,
      [parent.id, now]
    )
    // One that is in another of its kind goes with that one.
    const own = parent.kind === this.#kind ? undefined : this.#parents[this.#kind]
    const rows = await this.#database.query<ResourceRow>(
      `select id from ${this.#name}
      where "${column}" = $1 and deleting_at is not null ${own === undefined ? '' : `and "${own}" is null`} order by id`,
      [parent.id]
    )
    return rows.map(row => row.id)
  }

  async marked(): Promise<string[]> {
    const rows = await this.#database.query<ResourceRow>(
      `select id from ${this.#name} where deleting_at is not null`
    )
    return rows.map(row => row.id)
  }

  /** Undefined when it is not there, or not being removed. */
  async markedRow(id: string): Promise<ResourceRow | undefined> {
    const [row] = await this.#database.query<ResourceRow>(
      `select * from ${this.#name} where id = $1 and deleting_at is not null`,
      [id]
    )
    return row
  }

  /** The row that is gone now. Refused by PostgreSQL while any plugin's row refers to it. */
  async delete(id: string, tx: Tx): Promise<ResourceRow | undefined> {
    const [row] = await this.#database.query<ResourceRow>(
      `delete from ${this.#name} where id = $1 and deleting_at is not null returning *`,
      [id],
      tx
    )
    return row
  }
}
