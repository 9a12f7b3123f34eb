/** What a column of a published table holds: its type in PostgreSQL, and the value that a row has for it. */
interface ColumnValues {
  readonly uuid: string
  readonly text: string
  readonly boolean: boolean
  readonly integer: number
  readonly timestamptz: Date
}

/** `uuid`; `uuid null` where a row may have none. */
export type ColumnType = keyof ColumnValues | `${keyof ColumnValues} null`

/**
 * A table of one plugin that others may join for reading and refer to with foreign keys. It is declared in the owner's
 * `api.ts`; SQL of others takes the name from here and reads these columns only:
 *
 *     db.sql<TableRow<typeof noteTable, 'title'>>(`select n.title from ${noteTable.name} n where n.id = ?`, [id])
 *
 * The plugin that uses it has the owner in `requires`: the table is there before its own migrations run, and stays
 * while the owner is off. Writing to it is for the owner alone.
 */
export interface PublishedTable<
  Columns extends Readonly<Record<string, ColumnType>> = Readonly<Record<string, ColumnType>>
> {
  readonly kind: 'table'
  /** For SQL text, with the schema: `notes.note`. It never changes: migrations that have run hold it. */
  readonly name: `${string}.${string}`
  /** The column that identifies a row. */
  readonly key: string
  /** What others may read, by name. */
  readonly columns: Columns
  /** For a foreign key in a migration: `references ${noteTable.reference} on delete restrict` is `references notes.note (id) …`. */
  readonly reference: string
}

/** A row of a published table, or what `Names` says of it. */
export type TableRow<T extends PublishedTable, Names extends keyof T['columns'] = keyof T['columns']> = {
  readonly [N in Names]: ValueOf<T['columns'][N]>
}

type ValueOf<C extends ColumnType> = C extends keyof ColumnValues
  ? ColumnValues[C]
  : C extends `${infer Type extends keyof ColumnValues} null`
    ? ColumnValues[Type] | null
    : never

/** Declares a published table; `name` is `<schema>.<table>`, and the schema is the plugin's id with `_` for `-`. */
export const publishedTable = <const Columns extends Readonly<Record<string, ColumnType>>>(
  name: `${string}.${string}`,
  { key, columns }: { readonly key: keyof NoInfer<Columns> & string; readonly columns: Columns }
): PublishedTable<Columns> =>
  Object.freeze({
    kind: 'table',
    name,
    key,
    columns: Object.freeze(columns),
    reference: `${name} (${key})`
  })
