/** A connection that waits for a lock, and one that is before it. */
export interface LockWait {
  /** The server's id of the connection that waits. */
  readonly waiting: number
  /** As it calls itself. */
  readonly waitingName: string
  readonly blocker: number
  /** Null when the connection has ended meanwhile, or is one of no client. */
  readonly blockerName: string | null
  /** When the blocker's transaction began. */
  readonly since: string | null
  /** The kind of the lock, as `locktype` of pg_locks: `relation`, `tuple`, `transactionid`, `advisory`; null when it has it meanwhile. */
  readonly lock: string | null
  /** The table that both are at, where it is one. */
  readonly table: string | null
}

/**
 * Who waits for a lock, and for whom. A connection is before another one also when it waits itself and would exclude it. Of a
 * row that is locked the server tells the transaction alone: then it is a table at which both have a lock.
 */
export const lockWaitsText = `
  with wait as materialized (
    select a.pid, a.application_name, blocker.pid as blocker
    from pg_stat_activity a cross join lateral unnest(pg_blocking_pids(a.pid)) as blocker (pid)
    where a.datname = current_database() and a.wait_event_type = 'Lock'
  ), held as materialized (
    select l.pid, l.granted, c.oid, format('%I.%I', n.nspname, c.relname) as name
    from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace n on n.oid = c.relnamespace
    where exists (select from wait) and l.locktype in ('relation', 'tuple') and c.relkind in ('r', 'p')
      and n.nspname <> 'pg_catalog' and l.database = (select oid from pg_database where datname = current_database())
  )
  select wait.pid as waiting, wait.application_name as "waitingName", wait.blocker, b.application_name as "blockerName",
    b.xact_start::text as since,
    (select min(l.locktype) from pg_locks l where l.pid = wait.pid and not l.granted) as lock,
    coalesce(
      (select min(name) from held where held.pid = wait.pid and not granted),
      (select min(own.name) from held own join held other on other.oid = own.oid
        where own.pid = wait.pid and other.pid = wait.blocker)
    ) as table
  from wait left join pg_stat_activity b on b.pid = wait.blocker`

const pluginNames = /^busbar plugin (.*)$/s

/** How a connection of a plugin calls itself; PostgreSQL keeps 63 bytes. */
export const connectionName = (plugin?: string): string =>
  plugin === undefined ? 'busbar' : `busbar plugin ${plugin}`

/** The plugin whose connection calls itself so. */
const pluginCalled = (name: string | null): string | undefined => pluginNames.exec(name ?? '')?.[1]

export const isPlatformCalled = (name: string | null): boolean =>
  name === connectionName() || name === 'busbar session'

/** In a sentence: who keeps a lock, and what helps when it stays. */
export function blockerOf(
  { blocker, blockerName }: LockWait,
  own: (pid: number) => string | undefined
): {
  readonly who: string
  readonly remedy: string
} {
  const plugin = own(blocker) ?? pluginCalled(blockerName)
  if (plugin !== undefined)
    return { who: `the plugin "${plugin}"`, remedy: 'turn that plugin off if this stays' }
  if (isPlatformCalled(blockerName))
    return { who: 'another operation of the platform', remedy: 'see what runs for long if this stays' }
  return {
    who:
      blocker === 0
        ? 'a prepared transaction'
        : `another client of the database ("${blockerName ?? ''}", process ${blocker})`,
    remedy: 'end what that does if this stays'
  }
}
