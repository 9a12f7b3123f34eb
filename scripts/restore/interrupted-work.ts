import type { BulkConnection } from 'busbar/sdk'
import { interruptedBackups } from '../../plugins/backups/interrupted-work.js'
import { interruptedDatabases } from '../../plugins/databases/interrupted-work.js'
import { interruptedDeploys } from '../../plugins/deployments/interrupted-work.js'
import { interruptedVolumes } from '../../plugins/volumes/interrupted-work.js'

/** What of the work of a plugin must not be taken up by a platform that was restored. */
interface InterruptedWork {
  readonly schema: string
  /** Columns that it needs, by table. */
  readonly needed: Readonly<Record<string, readonly string[]>>
  /** Answers what was ended, a sentence for each. */
  end(connection: Pick<BulkConnection, 'query'>): Promise<readonly string[]>
}

const all: readonly InterruptedWork[] = [
  interruptedBackups,
  interruptedDatabases,
  interruptedDeploys,
  interruptedVolumes
]

/**
 * In the transaction that brings back what an archive has: ends work that waited, or was under way, when it was made, and that would
 * replace or remove something of today. Plugins whose tables are not in the archive, or are those of another release, have none.
 */
export async function endInterruptedWork(connection: Pick<BulkConnection, 'query'>): Promise<string[]> {
  const said: string[] = []
  for (const work of all) if (await isThere(connection, work)) said.push(...(await work.end(connection)))
  return said
}

async function isThere(
  connection: Pick<BulkConnection, 'query'>,
  { schema, needed }: InterruptedWork
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
