/** A connection that waits for a lock, and one that is before it. */
export interface LockWait {
  /** The server's id of the connection that waits. */
  readonly waiting: number
  /** As it calls itself; null while it is only being made. */
  readonly waitingName: string | null
  /** It is a connection that is only being made, of whomever. */
  readonly isConnecting?: boolean
  /** When the transaction began that waits. */
  readonly waitingSince: string | null
  readonly blocker: number
  /** Null when the connection has ended meanwhile, or is one of no client. */
  readonly blockerName: string | null
  /** When the blocker's connection began. */
  readonly began: string | null
  /** The kind of the lock, as `locktype` of pg_locks: `relation`, `tuple`, `transactionid`, `advisory`; null when it has it meanwhile. */
  readonly lock: string | null
  /** The blocker waits for the same, and is only before the other one. */
  readonly isQueued: boolean
  /** The table that both are at, where it is one. */
  readonly table: string | null
}

/** As the server tells it: `relations` are what both are at. */
export type SeenWait = Omit<LockWait, 'table'> & { readonly relations: readonly number[] | null }

/** Of a wait as many as this, those of `$1` first: of many that wait for the same, each is before all that came later. */
const mostBlockers = 16

/**
 * Who waits for a lock, and for whom. A connection is before another one also when it waits itself and would exclude it. Of a
 * row that is locked the server tells the transaction alone: then it is a table at which both have a lock. `$2`: connections that
 * are only being made too, which have no database yet. Functions alone and no table or view: as a prepared statement it is answered also while somebody has the catalogs locked.
 */
export const lockWaitsText = `
  with activity as materialized (
    select pid, application_name, datid, backend_type, wait_event_type, backend_start::text as began, xact_start::text as since
    from pg_stat_get_activity(null)
  ), waiter as materialized (
    select pid, application_name, since, false as connecting from activity
    where wait_event_type = 'Lock' and datid = (select datid from activity where pid = pg_backend_pid())
    union all
    select distinct l.pid, null, null, true from pg_lock_status() l where $2::bool and not l.granted and l.pid is not null and not exists (
      select from activity a where a.pid = l.pid and (a.datid is not null or a.backend_type <> 'client backend'))
  ), lock as materialized (
    select pid, granted, locktype, relation, row(locktype, database, relation, page, tuple, virtualxid, transactionid, classid, objid, objsubid)::text as tag
    from pg_lock_status() where exists (select from waiter)
  ), awaited as materialized (
    select distinct on (pid) pid, locktype, relation, tag from lock where not granted
  ), pair as materialized (
    select waiter.pid, blocker.pid as blocker from waiter cross join lateral unnest(pg_blocking_pids(waiter.pid)) as blocker (pid)
    group by 1, 2
  ), wait as materialized (
    select pair.pid, pair.blocker, own.locktype, own.relation, coalesce(own.tag = other.tag, false) as queued,
      row_number() over (
        partition by pair.pid order by pair.blocker = any($1::int[]) desc, coalesce(own.tag = other.tag, false), pair.blocker
      ) as place
    from pair left join awaited own on own.pid = pair.pid left join awaited other on other.pid = pair.blocker
  ), held as materialized (
    select distinct pid, relation from lock where locktype in ('relation', 'tuple') and relation >= 16384
  ), shared as materialized (
    select wait.pid, wait.blocker, array_agg(own.relation::int8 order by own.relation) as relations
    from wait join held own on own.pid = wait.pid join held other on other.pid = wait.blocker and other.relation = own.relation
    where wait.place <= ${mostBlockers} and wait.relation is null group by 1, 2
  )
  select wait.pid as waiting, waiter.application_name as "waitingName", waiter.connecting as "isConnecting", waiter.since as "waitingSince", wait.blocker,
    b.application_name as "blockerName", b.began, wait.locktype as lock, wait.queued as "isQueued",
    case when wait.relation is null then shared.relations else array[wait.relation::int8] end as relations
  from wait join waiter on waiter.pid = wait.pid left join activity b on b.pid = wait.blocker
    left join shared on shared.pid = wait.pid and shared.blocker = wait.blocker
  where wait.place <= ${mostBlockers}`

/** Which of them are tables, and how they are called. */
export const tableNamesText = `
  select c.oid::int8 as oid, format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.oid = any($1::oid[]) and c.relkind in ('r', 'p')`

/** The server's own have ids below this. */
const firstOfUsers = 16_384
export const isCatalog = (relation: number): boolean => relation < firstOfUsers

/** Sends a signal to a process with this id, of this database; `$2`: only if it is still the connection that began at `$3` and keeps others waiting. */
export const signalText = (what: 'cancel' | 'terminate'): string => `
  select pg_${what}_backend(a.pid) as "isSent" from pg_stat_get_activity($1::int) a
  where a.pid = $1::int and a.datid = (select own.datid from pg_stat_get_activity(pg_backend_pid()) own)
    and (not $2::bool or (a.backend_start::text is not distinct from $3::text and exists (
      select from pg_stat_get_activity(null) w where w.wait_event_type = 'Lock' and a.pid = any(pg_blocking_pids(w.pid)))))`

/** How many locks each connection has that take room in the server's table of them. */
export const lockCountsText = `
  select l.pid, count(*)::int as locks, min(a.application_name) as name
  from pg_lock_status() l left join pg_stat_get_activity(null) a on a.pid = l.pid
  where l.pid is not null and not l.fastpath group by l.pid order by 2 desc limit 100`

/** Who has the advisory lock of this name, in this database. */
export const lockHolderText = `
  select l.pid, a.application_name as name
  from (select hashtextextended($1, 0) as key) k cross join pg_lock_status() l left join pg_stat_get_activity(null) a on a.pid = l.pid
  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
    and l.database = (select own.datid from pg_stat_get_activity(pg_backend_pid()) own)
    and l.classid = ((k.key >> 32) & 4294967295)::oid and l.objid = (k.key & 4294967295)::oid
  limit 1`

const pluginNames = /^busbar plugin (.*)$/s

/** How a connection of a plugin calls itself; PostgreSQL keeps 63 bytes. */
export const connectionName = (plugin?: string): string =>
  plugin === undefined ? 'busbar' : `busbar plugin ${plugin}`

/** The plugin whose connection calls itself so. */
const pluginCalled = (name: string | null): string | undefined => pluginNames.exec(name ?? '')?.[1]

/** A connection outside of the pool, of a backup or a restore. */
export const bulkConnectionName = 'busbar bulk'

export const isPlatformCalled = (name: string | null): boolean =>
  name === connectionName() || name === 'busbar session' || name === bulkConnectionName

export interface Client {
  readonly pid: number
  readonly name: string | null
}

/** In a sentence: who has a lock, and what helps when it stays. */
export function clientOf(
  { pid, name }: Client,
  own: (pid: number) => string | undefined
): { readonly who: string; readonly remedy: string } {
  const plugin = own(pid) ?? pluginCalled(name)
  if (plugin !== undefined)
    return { who: `the plugin "${plugin}"`, remedy: 'turn that plugin off if this stays' }
  if (isPlatformCalled(name))
    return { who: 'another operation of the platform', remedy: 'see what runs for long if this stays' }
  return {
    who:
      pid === 0
        ? 'a prepared transaction'
        : `another client of the database ("${name ?? ''}", process ${pid})`,
    remedy: 'end what that does if this stays'
  }
}
