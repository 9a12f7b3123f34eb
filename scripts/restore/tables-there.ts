import type { BulkConnection } from 'busbar/sdk'

/** Columns that are needed, by table, of the schema of a plugin. */
export interface NeededColumns {
  readonly schema: string
  readonly needed: Readonly<Record<string, readonly string[]>>
}

/** Whether they are there: an archive may be without a plugin, or have the tables of another release. */
export async function areThere(
  connection: Pick<BulkConnection, 'query'>,
  { schema, needed }: NeededColumns
): Promise<boolean> {
  const names = Object.entries(needed).flatMap(([table, columns]) =>
    columns.map(column => `${table}.${column}`)
  )
  const found = await connection.query(
    `select from information_schema.columns
    where table_schema = $1 and table_name::text || '.' || column_name::text = any($2)`,
    [schema, names]
  )
  return found.length === names.length
}
