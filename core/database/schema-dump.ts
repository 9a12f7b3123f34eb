import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Tx } from 'busbar/sdk'
import type { TableSize } from './schema-removal.js'
import type { Statements } from './statements.js'

const rowsAtOnce = 500
const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`

/**
 * Writes all rows of a schema's tables to a file, one JSON object a line: first `about`, then
 * `{ table, row }`. Compressed, and for the platform's account alone.
 */
export async function dumpSchema(
  database: Statements,
  {
    schema,
    tables,
    file,
    about,
    tx
  }: {
    readonly schema: string
    readonly tables: readonly TableSize[]
    readonly file: string
    readonly about: object
    readonly tx: Tx
  }
): Promise<void> {
  const gzip = createGzip()
  const output = createWriteStream(file, { mode: 0o600, flags: 'wx' })
  const written = finished(gzip.pipe(output))
  // Awaited at the end; a failure before that must not be an unhandled rejection.
  written.catch(() => {})
  const write = async (line: string): Promise<void> => {
    if (!gzip.write(`${line}\n`)) await Promise.race([once(gzip, 'drain'), written])
  }
  try {
    await write(JSON.stringify(about))
    for (const { name } of tables) {
      await database.query(
        `declare dumped no scroll cursor for select row_to_json(t)::text as row from ${quoted(schema)}.${quoted(name)} as t`,
        undefined,
        tx
      )
      for (;;) {
        const rows = await database.query<{ row: string }>(`fetch ${rowsAtOnce} from dumped`, undefined, tx)
        for (const { row } of rows) await write(`{"table":${JSON.stringify(name)},"row":${row}}`)
        if (rows.length < rowsAtOnce) break
      }
      await database.query('close dumped', undefined, tx)
    }
  } finally {
    gzip.end()
  }
  await written
}
