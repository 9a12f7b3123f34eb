import type { BulkConnection } from 'busbar/sdk'

/** Of a volume that may hold what was written since. */
const keepDays = 30
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
    upgrade: [
      'id',
      'database_id',
      'phase',
      'error',
      'finished_at',
      'to_version',
      'former_volume',
      'kept_volume',
      'kept_until'
    ]
  },
  end: async (connection: Pick<BulkConnection, 'query'>): Promise<string[]> => {
    await connection.query(
      `with other as (
        select o.id, o.phase, case o.phase when 'switched' then o.former_volume
          else coalesce(o.kept_volume, d.slug || '-vol-' || left(o.id::text, 8)) end as volume
        from databases.upgrade o join databases.database d on d.id = o.database_id where o.phase in ('running', 'switched'))
      update databases.upgrade u set phase = 'failed', finished_at = now(),
        -- Nothing that comes later takes it for a volume of nobody.
        kept_volume = other.volume, kept_until = now() + make_interval(days => $2),
        error = $1 || ' this upgrade was not over: ask for it again where it is still wanted; where it has '
          || case other.phase when 'switched' then 'failed' else 'gone through' end
          || ' since, its data is in the volume ' || other.volume
      from other where other.id = u.id`,
      [archived, keepDays]
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
          when 'restore' then $1 || ' a restore into it was not over: ask for it again where it is still wanted. What was there before it is in the volume '
            || coalesce(d.former_volume, d.volume) || coalesce(', and what was restored in ' || case
              when d.former_volume is null then to_jsonb(d) ->> 'next_volume' else d.volume end, '')
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
