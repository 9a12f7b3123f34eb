import { createHash } from 'node:crypto'
import type { Log, Migration } from 'busbar/sdk'
import pg, { type PoolClient } from 'pg'
import { stopping } from '../clock/stopping.js'
import { connectionName } from './lock-waits.js'
import type { LockWatch } from './lock-watch.js'
import { withinLimits } from './migration-limits.js'
import { endOnAbort } from './migration-stop.js'
import type { Postgres } from './postgres.js'
import { errorCode, isConnectionError, storeError } from './problems.js'
import { codeOnOthers, refuseReachingCode } from './reaching-code.js'
import { isInTransaction } from './session-state.js'

/** The migrations of one plugin and the schema they build. */
export interface MigrationPlan {
  readonly plugin: string
  readonly schema: string
  readonly migrations: readonly Migration[]
  /** Of a third-party plugin: its versions are its own, and a statement that hangs is ended. */
  readonly isThirdParty?: boolean
  /** Why none of them may run. */
  readonly refusal?: string | undefined
}

interface MigrateOptions {
  /** The release that runs, as recorded beside each migration. */
  readonly version: string
  readonly log: Log
  /** Aborts when the platform stops: what is under way is ended then, and rolled back. */
  readonly signal?: AbortSignal
  /** True when no process of the release before can be running. */
  readonly contractAllowed?: boolean
  /** For all migrations of a third-party plugin. Default 40 s: other changes of plugins wait, and their routes answer after 60 s. */
  readonly thirdPartyLimitMs?: number
  /** How long a migration of a third-party plugin may keep others waiting for locks. */
  readonly blockingLimitMs?: number
}

interface Applied {
  readonly plugin: string
  readonly name: string
  readonly checksum: string
  readonly phase: Migration['phase']
  readonly release: string
}

const undefinedTable = '42P01'
/** "busb", and 1 for migrations: one process at a time migrates. */
export const migrationLock = [0x62757362, 1] as const
const lockTimeoutMs = 20_000
const blockingLimitMs = 2_000
const never = new AbortController().signal

/**
 * Brings every plan's schema up to date, in the order given, one process at a time. A plugin whose
 * migration cannot run is in `failed` and the others go on; a database from a later release stops the
 * whole start. One that is ended by the signal rejects with `E_STOPPING`.
 */
export async function migrate(
  postgres: Postgres,
  plans: readonly MigrationPlan[],
  options: MigrateOptions
): Promise<{ failed: ReadonlyMap<string, Error> }> {
  const failed = new Map<string, Error>()
  for (const group of groupsOf(plans)) await migrateGroup(postgres, group, { ...options, plans, failed })
  return { failed }
}

/** In their order, each group for a connection: what one third-party plugin sets for the session is not for the next plan. */
function groupsOf(plans: readonly MigrationPlan[]): MigrationPlan[][] {
  const groups: MigrationPlan[][] = [[]]
  for (const plan of plans) {
    if (plan.isThirdParty) groups.push([])
    groups.at(-1)?.push(plan)
    if (plan.isThirdParty) groups.push([])
  }
  // Without any, the table is made and a later release's database refused all the same.
  return groups.filter((group, at) => group.length > 0 || (at === 0 && groups.length === 1))
}

/** The migration that is under way. */
interface Present {
  readonly plugin: string
  readonly migration: string
}

interface GroupOptions extends MigrateOptions {
  /** Those of all groups. */
  readonly plans: readonly MigrationPlan[]
  readonly failed: Map<string, Error>
}

async function migrateGroup(
  postgres: Postgres,
  group: readonly MigrationPlan[],
  {
    version,
    log,
    signal = never,
    contractAllowed = false,
    thirdPartyLimitMs = 40_000,
    blockingLimitMs: blockingMs = blockingLimitMs,
    plans,
    failed
  }: GroupOptions
): Promise<void> {
  if (signal.aborted) throw stopping()
  const client = await postgres.pool.connect().catch(error => {
    postgres.locks.noteRefusal(error)
    throw storeError(error)
  })
  let isUsable = false
  let hasApplied = false
  let present: Present | undefined
  const letGo = endOnAbort(client, postgres.locks, signal)
  try {
    // Without a limit: another process may be at migrations that take long.
    await client.query(`set lock_timeout = 0; select pg_advisory_lock(${migrationLock.join()})`)
    const applied = await readApplied(client)
    refuseLaterDatabase(applied, plans, version)
    for (const plan of group) {
      const late = performance.now() + thirdPartyLimitMs
      try {
        for (const migration of pendingMigrations(plan, applied, contractAllowed)) {
          hasApplied = true
          present = { plugin: plan.plugin, migration: migration.name }
          const work = async () => await apply(client, plan, migration, version, postgres.locks)
          const { name } = migration
          const limits = {
            plugin: plan.plugin,
            name,
            late,
            limitMs: thirdPartyLimitMs,
            blockingMs,
            locks: postgres.locks
          }
          if (plan.isThirdParty) await withinLimits(client, limits, work)
          else await work()
          log.info(present, 'migrated')
          present = undefined
        }
      } catch (error) {
        if (signal.aborted || isConnectionError(error)) throw error
        const explained = storeError(postgres.locks.explain(error, client))
        const reason = explained instanceof Error ? explained : new Error(String(explained))
        log.error({ err: reason, plugin: plan.plugin }, 'the migrations of a plugin failed')
        failed.set(plan.plugin, reason)
        // Its connection may have been ended.
        if (plan.isThirdParty) return
      }
    }
    await client.query(`select pg_advisory_unlock(${migrationLock.join()}); reset lock_timeout`)
    isUsable = true
  } catch (error) {
    if (!signal.aborted) throw storeError(postgres.locks.explain(error, client))
    log.info(present ?? {}, `the platform stops: ${whatWasEnded(group, present)}`)
    throw stopping()
  } finally {
    letGo()
    // Closing the connection gives the lock back, whatever went wrong. A migration may leave settings behind, as pg_dump's do.
    client.release(!isUsable || hasApplied)
  }
}

const whatWasEnded = (group: readonly MigrationPlan[], present: Present | undefined): string =>
  present === undefined
    ? `the migrations of ${group.map(({ plugin }) => plugin).join(', ')} run at the next start`
    : `the migration ${present.migration} of ${present.plugin} was ended and rolled back, and runs again at the next start`

async function readApplied(client: PoolClient): Promise<readonly Applied[]> {
  try {
    return (
      await client.query<Applied>('select plugin, name, checksum, phase, release from kernel.migration')
    ).rows
  } catch (error) {
    if (errorCode(error) !== undefinedTable) throw error
    await client.query(`
      create schema if not exists kernel;
      create table kernel.migration (
        plugin text not null,
        name text not null,
        checksum text not null,
        phase text not null check (phase in ('expand', 'contract')),
        applied_at timestamptz(3) not null,
        release text not null,
        primary key (plugin, name)
      )`)
    return []
  }
}

/** Throws when the database has seen a migration that this release does not know. */
function refuseLaterDatabase(
  applied: readonly Applied[],
  plans: readonly MigrationPlan[],
  version: string
): void {
  const known = new Map(
    plans.map(plan => [plan.plugin, new Set(plan.migrations.map(migration => migration.name))])
  )
  const foreign = new Set(plans.filter(({ isThirdParty }) => isThirdParty).map(({ plugin }) => plugin))
  const unknown = applied.find(
    ({ plugin, name }) => !foreign.has(plugin) && known.get(plugin)?.has(name) === false
  )
  if (unknown === undefined) return
  throw new Error(
    `this is release ${version}, and the database has been migrated by release ${unknown.release} ` +
      `(${unknown.plugin}: ${unknown.name}): start release ${unknown.release} or later, or restore a backup from before it`
  )
}

/** What is to run for a plan; throws when a migration that has run was edited afterwards. */
export function pendingMigrations(
  plan: MigrationPlan,
  applied: readonly Applied[],
  contractAllowed: boolean
): readonly Migration[] {
  const own = applied.filter(row => row.plugin === plan.plugin)
  const done = new Map(own.map(row => [row.name, row.checksum]))
  if (plan.refusal !== undefined) throw new Error(plan.refusal)
  // What only adds leaves room for the version of before, which must run again when a later one does not come up.
  const unknown = own.find(
    ({ name, phase }) => phase === 'contract' && plan.migrations.every(migration => migration.name !== name)
  )?.name
  if (plan.isThirdParty && unknown !== undefined)
    throw new Error(
      `its tables are of a later version, which had the migration ${unknown}: install that version again, or purge what the plugin has stored`
    )
  const sorted = [...plan.migrations].sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const migration of sorted) {
    const recorded = done.get(migration.name)
    if (recorded !== undefined && recorded !== checksumOf(migration)) {
      throw new Error(
        `migration ${migration.name} of ${plan.plugin} was changed after it had run: restore its text and add a new migration instead`
      )
    }
  }
  // An earlier form of a schema that does not exist cannot be in use.
  const isNew = done.size === 0
  return sorted.filter(
    ({ name, phase }) => !done.has(name) && (phase === 'expand' || contractAllowed || isNew)
  )
}

export const checksumOf = (migration: Migration): string =>
  createHash('sha256').update(migration.sql).digest('hex')

async function apply(
  client: PoolClient,
  plan: MigrationPlan,
  migration: Migration,
  release: string,
  locks: LockWatch
): Promise<void> {
  const sql = migration.sql.replaceAll('$schema', plan.schema)
  await client.query('begin')
  try {
    await client.query(
      `set local lock_timeout = ${lockTimeoutMs}; set local statement_timeout = 0; ${
        plan.isThirdParty
          ? `set local application_name = ${pg.escapeLiteral(connectionName(plan.plugin))}; `
          : ''
      }create schema if not exists ${plan.schema}`
    )
    const before = plan.isThirdParty ? await codeOnOthers(client, plan.schema) : undefined
    await client.query(sql).catch(error => {
      throw isConnectionError(error) ? error : explain(locks.explain(error, client), plan, migration, sql)
    })
    if (!isInTransaction(client))
      throw new Error(
        `migration ${migration.name} of ${plan.plugin} ends the transaction it runs in: leave out begin, commit and rollback`
      )
    if (before !== undefined)
      await refuseReachingCode(client, plan.schema, before).catch(error => {
        throw isConnectionError(error) ? error : explain(error, plan, migration, sql)
      })
    await client.query(
      'insert into kernel.migration (plugin, name, checksum, phase, applied_at, release) values ($1, $2, $3, $4, $5, $6)',
      [plan.plugin, migration.name, checksumOf(migration), migration.phase, new Date(), release]
    )
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

function explain(error: unknown, plan: MigrationPlan, migration: Migration, sql: string): Error {
  const reason = error instanceof Error ? error.message : String(error)
  const position =
    typeof error === 'object' && error !== null && 'position' in error ? Number(error.position) : NaN
  const before = sql.slice(0, position - 1).split('\n')
  const place = position > 0 ? ` in line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}` : ''
  return new Error(`migration ${migration.name} of ${plan.plugin} failed${place}: ${reason}`, {
    cause: error
  })
}
