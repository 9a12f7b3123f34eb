import type { BulkConnection } from 'busbar/sdk'

const restoreError =
  'the platform was restored from an archive that was made while this restore was not over: ask for it again where it is still wanted'
const backupError =
  'the platform was restored from an archive that was made while this backup was not over: its file, where it was finished since, stays where it is; make another one'

/**
 * For who restores the platform. A restore that waited or was under way when the archive was made would put something old over what has
 * been written since. A backup that was under way would be ended as one that was cut off, and its file removed, which may have been
 * finished since; one that had only waited is made, of what there is now.
 */
export const interruptedBackups = {
  schema: 'backups',
  needed: {
    restore: ['source_id', 'status', 'restored_at', 'finished_at', 'error'],
    backup: ['source_id', 'status', 'begun_at', 'finished_at', 'key', 'has_file', 'error'],
    source: ['id', 'kind', 'name']
  },
  end: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    const restores = await connection.query<{ kind: string; name: string }>(
      `with failed as (
        update backups.restore set status = 'failed', finished_at = now(), error = $1
        where status = 'running' and restored_at is null returning source_id)
      select s.kind, s.name from failed f join backups.source s on s.id = f.source_id order by 1, 2`,
      [restoreError]
    )
    const backups = await connection.query<{ kind: string; name: string; key: string | null }>(
      `with failed as (
        update backups.backup set status = 'failed', finished_at = now(), error = $1, has_file = false
        where status = 'running' and (begun_at is not null or has_file) returning source_id, key)
      select s.kind, s.name, f.key from failed f join backups.source s on s.id = f.source_id order by 1, 2`,
      [backupError]
    )
    return [
      ...restores.map(
        ({ kind, name }) =>
          `a restore of the ${kind} ${name} was not over when the archive was made: it does not go on; ask for it again where it is still wanted`
      ),
      ...backups.map(
        ({ kind, name, key }) =>
          `a backup of the ${kind} ${name} was not over when the archive was made: it does not go on${key === null ? '' : `; what it has written since, if anything, is ${key} where it was to be kept`}`
      )
    ]
  }
}
