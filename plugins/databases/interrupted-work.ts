import type { BulkConnection } from 'busbar/sdk'

const archived = 'the platform was restored from an archive that was made while'

/**
 * For who restores the platform. Work that was under way when the archive was made is over since, and rows were written to what it has
 * led to: whoever took it up would remove the volume that these are in, of one that was being made, or was being upgraded, or would
 * make its container anew with the volume of then.
 */
export const interruptedDatabases = {
  schema: 'databases',
  needed: {
    database: [
      'id',
      'name',
      'slug',
      'status',
      'status_detail',
      'task',
      'status_before',
      'former_volume',
      'is_remade',
      'initialized_at',
      'deleting_at'
    ],
    upgrade: ['id', 'database_id', 'phase', 'error', 'finished_at', 'to_version']
  },
  end: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    await connection.query(
      `update databases.upgrade u set phase = 'failed', finished_at = now(),
        error = $1 || ' this upgrade was not over: ask for it again where it is still wanted; where it has gone through since, its data is in the volume '
          || d.slug || '-vol-' || left(u.id::text, 8)
      from databases.database d where d.id = u.database_id and u.phase in ('running', 'switched')`,
      [archived]
    )
    const ended = await connection.query<{ name: string; task: string }>(
      `with was as (
        select id, task from databases.database
        where task in ('provision', 'upgrade', 'backup', 'restore') and deleting_at is null)
      update databases.database d set task = null, status_before = null, former_volume = null, is_remade = false,
        -- What is not known to hold nothing is not thrown away.
        initialized_at = coalesce(d.initialized_at, now()),
        status = case was.task when 'backup' then coalesce(d.status_before, 'failed') else 'failed' end,
        status_detail = case was.task
          when 'provision' then $1 || ' this database was being made: reload it where it does not run; what is in its volume stays'
          when 'upgrade' then $1 || ' its upgrade was not over: its upgrades say more'
          when 'restore' then $1 || ' a restore into it was not over: ask for it again where it is still wanted'
        end
      from was where was.id = d.id returning d.name, was.task`,
      [archived]
    )
    return ended.flatMap(({ name, task }) => words[task]?.(name) ?? []).sort()
  }
}

/** Of backups and restores the plugin `backups` tells. */
const words: Readonly<Record<string, (name: string) => string>> = {
  provision: name =>
    `the database ${name} was being made, or made anew, and that was not over when the archive was made: it does not go on; reload it where it does not run`,
  upgrade: name =>
    `an upgrade of the database ${name} was not over when the archive was made: it does not go on; ask for it again where it is still wanted`
}
