/**
 * The table whose rows still refer to the one a statement tried to delete (PostgreSQL 23503, and 23001 since 18), or
 * null for any other error. In a removal it means: a plugin that is off still holds something.
 */
export function tableHolding(error: unknown): string | null {
  try {
    const { code, schema = '?', table = '?' } = Object(error) as Readonly<Record<string, unknown>>
    return code === '23503' || code === '23001' ? `${String(schema)}.${String(table)}` : null
  } catch {
    // A plugin threw a value that throws when it is read.
    return null
  }
}

/** What helps where a table holds rows of what is being removed, in words for the log: `x_notes.note` is of the plugin "notes". */
export function heldRemedy(table: string): string {
  const plugin = (table.split('.')[0] ?? '').replace(/^x_/, '').replaceAll('_', '-')
  return `enable the plugin "${plugin}", or, when its code is gone or it is not needed, remove what it has stored: POST /api/plugins/${plugin}/purge (with "dry_run": true to see it first)`
}
