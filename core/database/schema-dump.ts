import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Tx } from 'busbar/sdk'
import { rowsFrom, type TableSize } from './schema-removal.js'
import type { Statements } from './statements.js'

/** Of a file that is being written: nobody takes half a dump for one. */
export const partialEnding = '.part'

const rowsAtOnce = 200
/** Rows of more bytes are read one by one and in pieces: 200 large ones do not fit into memory. */
const smallBytes = 64 * 1024
const pieceCharacters = 8 * 1024 * 1024

type Write = (text: string) => Promise<void>

interface Dumped {
  readonly schema: string
  readonly tables: readonly TableSize[]
  readonly file: string
  readonly about: object
  readonly tx: Tx
}

/**
 * Writes all rows of a schema's tables to a file, one JSON object a line: first `about`, then
 * `{ table, row }`. Compressed, and for the platform's account alone. It has its name once it is whole and on disk.
 */
export async function dumpSchema(
  database: Statements,
  { schema, tables, file, about, tx }: Dumped
): Promise<void> {
  const partial = `${file}${partialEnding}`
  const gzip = createGzip()
  const output = createWriteStream(partial, { mode: 0o600, flags: 'wx', flush: true })
  const written = finished(gzip.pipe(output))
  // Awaited at the end; a failure before that must not be an unhandled rejection.
  written.catch(() => {})
  const write: Write = async text => {
    if (!gzip.write(text)) await Promise.race([once(gzip, 'drain'), written])
  }
  try {
    await write(`${JSON.stringify(about)}\n`)
    for (const table of tables) await dumpTable(database, schema, table, write, tx)
  } finally {
    gzip.end()
  }
  await written
  await rename(partial, file)
  const folder = await open(dirname(file))
  await folder.sync().finally(async () => {
    await folder.close()
  })
}

async function dumpTable(
  database: Statements,
  schema: string,
  table: TableSize,
  write: Write,
  tx: Tx
): Promise<void> {
  const from = rowsFrom(schema, table)
  const head = `{"table":${JSON.stringify(table.name)},"row":`
  // What is dumped is what is dropped, and a row is found again where it was.
  await database.query(`lock table ${from} in share mode`, undefined, tx)
  // With `.*`, as the name alone would be a column of that name where there is one. `offset` has each row made once.
  await database.query(
    `declare dumped no scroll cursor for
    select "table", "at", case when octet_length("row") <= ${smallBytes} then "row" end as "row"
    from (select t.tableoid::text as "table", t.ctid::text as "at", row_to_json(t.*)::text as "row" from ${from} as t offset 0) as made`,
    undefined,
    tx
  )
  for (;;) {
    const rows = await database.query<{ table: string; at: string; row: string | null }>(
      `fetch ${rowsAtOnce} from dumped`,
      undefined,
      tx
    )
    for (const { table: oid, at, row } of rows) {
      if (row === null) {
        await write(head)
        await dumpLarge(database, { from, oid, at, write, tx })
        await write('}\n')
      } else await write(`${head}${row}}\n`)
    }
    if (rows.length < rowsAtOnce) break
  }
  await database.query('close dumped', undefined, tx)
}

/** A row by where it is: its partition, and its place in that. */
async function dumpLarge(
  database: Statements,
  {
    from,
    oid,
    at,
    write,
    tx
  }: {
    readonly from: string
    readonly oid: string
    readonly at: string
    readonly write: Write
    readonly tx: Tx
  }
): Promise<void> {
  for (let offset = 1; ; offset += pieceCharacters) {
    const [found] = await database.query<{ piece: string; isLast: boolean }>(
      `select substr("row", $3, ${pieceCharacters}) as piece, length("row") < $3::int + ${pieceCharacters} as "isLast"
      from (select row_to_json(t.*)::text as "row" from ${from} as t where t.tableoid = $1::oid and t.ctid = $2::tid offset 0) as made`,
      [oid, at, offset],
      tx
    )
    if (found === undefined) throw new Error(`a row of ${from} is not where it was`)
    await write(found.piece)
    if (found.isLast) return
  }
}
