import type { Readable } from 'node:stream'
import type { BulkConnection } from 'busbar/sdk'
import { type Catalog, qualified, type Table } from './catalog.js'
import { readCatalog } from './read-catalog.js'
import { copiedPart } from './table-sql.js'

const lockTimeout = '60s'
/** In one statement; each table takes room in the server's table of locks. */
const locksAtOnce = 200

/** All schemas of the platform as they were at one moment. */
interface Snapshot {
  readonly catalog: Catalog
  /** What an archive does not keep, in words. */
  readonly leftOut: readonly string[]
  readonly postgres: { readonly version: string; readonly major: number }
  /** About how many bytes the tables take, indexes left out. */
  readonly bytes: number
  /** The rows of a table, as `copy` writes them; null where there are none to copy. */
  rows(table: Table): Readable | null
}

interface SnapshotParts {
  readonly connection: BulkConnection
  readonly schemas: (connection: Pick<BulkConnection, 'query'>) => Promise<readonly string[]>
}

/**
 * Runs `use` in one transaction that sees the database as it is now, whatever others write meanwhile. Tables are locked
 * against being changed in their form, and against nothing else: reads and writes go on.
 */
export async function withSnapshot<T>(
  { connection, schemas }: SnapshotParts,
  use: (snapshot: Snapshot) => Promise<T>
): Promise<T> {
  await connection.query('begin isolation level repeatable read read only')
  await connection.query(`set local lock_timeout = '${lockTimeout}'`)
  const names = await schemas(connection)
  // Before the catalog is read: what it says of them stays true from here on.
  await lockTables(connection, names)
  const { catalog, leftOut } = await readCatalog(connection, names)
  const [server] = await connection.query<{ version: string; major: number; bytes: string }>(
    `select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as major,
      (select coalesce(sum(pg_table_size(c.oid)), 0)::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = any($1) and c.relkind = 'r') as bytes`,
    [names]
  )
  if (server === undefined) throw new Error('the database did not say its version')
  const result = await use({
    catalog,
    leftOut,
    postgres: { version: server.version, major: server.major },
    bytes: Number(server.bytes),
    rows: table => {
      const part = copiedPart(table)
      return part === null ? null : connection.copyOut(`copy ${part} to stdout`)
    }
  })
  await connection.query('commit')
  return result
}

async function lockTables(
  connection: Pick<BulkConnection, 'query'>,
  schemas: readonly string[]
): Promise<void> {
  const tables = await connection.query<{ schema: string; name: string }>(
    `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = any($1) and c.relkind in ('r', 'p') order by 1, 2`,
    [schemas]
  )
  for (let at = 0; at < tables.length; at += locksAtOnce) {
    const some = tables.slice(at, at + locksAtOnce).map(table => `only ${qualified(table)}`)
    await connection.query(`lock table ${some.join(', ')} in access share mode`)
  }
}
