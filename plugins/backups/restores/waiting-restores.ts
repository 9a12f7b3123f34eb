import type { BulkConnection } from 'busbar/sdk'

const error =
  'the platform was restored from an archive that was made while this restore was not over: ask for it again where it is still wanted'
/** Archives of other releases may be without. */
const needed = {
  restore: ['source_id', 'status', 'restored_at', 'finished_at', 'error'],
  source: ['id', 'kind', 'name']
}

/**
 * For who restores the platform, in that transaction: ends restores that waited, or were under way, when the archive was made. Begun
 * again they would put something old over what has been written since then. Answers whose they were, in words.
 */
export async function failWaitingRestores(connection: Pick<BulkConnection, 'query'>): Promise<string[]> {
  const names = Object.entries(needed).flatMap(([table, columns]) =>
    columns.map(column => `${table}.${column}`)
  )
  const found = await connection.query(
    `select from information_schema.columns
    where table_schema = 'backups' and table_name::text || '.' || column_name::text = any($1)`,
    [names]
  )
  if (found.length < names.length) return []
  const failed = await connection.query<{ kind: string; name: string }>(
    `with failed as (
      update backups.restore set status = 'failed', finished_at = now(), error = $1
      where status = 'running' and restored_at is null returning source_id)
    select s.kind, s.name from failed f join backups.source s on s.id = f.source_id order by 1, 2`,
    [error]
  )
  return failed.map(({ kind, name }) => `the ${kind} ${name}`)
}
