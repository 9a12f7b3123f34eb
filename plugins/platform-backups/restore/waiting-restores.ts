import type { BulkConnection } from 'busbar/sdk'
import type { Catalog } from '../database/catalog.js'

const error =
  'the platform was restored from an archive that was made while this restore was not over: ask for it again where it is still wanted'
const needed: ReadonlyArray<readonly [string, readonly string[]]> = [
  ['restore', ['source_id', 'status', 'restored_at', 'finished_at', 'error']],
  ['source', ['id', 'kind', 'name']]
]

/**
 * Ends restores of databases and volumes that waited, or were under way, when the archive was made: begun again, they would put
 * something old over what has been written since then. To be called in the transaction that restores; what they were of.
 */
export async function failRestores(
  connection: Pick<BulkConnection, 'query'>,
  { tables }: Pick<Catalog, 'tables'>
): Promise<string[]> {
  const isThere = needed.every(([name, columns]) =>
    tables.some(
      table =>
        table.schema === 'backups' &&
        table.name === name &&
        columns.every(column => table.copied.includes(column))
    )
  )
  if (!isThere) return []
  const failed = await connection.query<{ kind: string; name: string }>(
    `with failed as (
      update backups.restore set status = 'failed', finished_at = now(), error = $1
      where status = 'running' and restored_at is null returning source_id)
    select s.kind, s.name from failed f join backups.source s on s.id = f.source_id order by 1, 2`,
    [error]
  )
  return failed.map(({ kind, name }) => `the ${kind} ${name}`)
}
