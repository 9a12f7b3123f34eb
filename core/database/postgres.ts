import type { Log, PlatformStatistics } from 'busbar/sdk'
import pg from 'pg'
import { whenLate } from '../clock/waits.js'
import { guardedSchema } from './code-guard.js'
import { connectionConfig } from './connection-config.js'
import { ConnectionShare, isHeldBy } from './connection-share.js'
import { Connections } from './connections.js'
import { processIdOf } from './guarded-connections.js'
import { connectionName } from './lock-waits.js'
import { LockWatch } from './lock-watch.js'
import { PluginGuards } from './plugin-guards.js'
import { connectTimeoutMs } from './problems.js'
import { Session } from './session.js'
import { type OpenTransactions, Statements } from './statements.js'
import { valueTypes } from './value-types.js'

export interface PostgresOptions {
  readonly url: string
  readonly log: Log
  readonly maxConnections?: number
  /** After so long without a statement, PostgreSQL ends a transaction. */
  readonly idleTransactionMs?: number
  /** How long one waits for a connection of the share that is in use. */
  readonly shareWaitMs?: number
  /** How long a statement waits for a lock. */
  readonly lockTimeoutMs?: number
  /** How long a connection of a third-party plugin may keep the platform waiting. */
  readonly blockingLimitMs?: number
  /** After so long without an answer to an attempt to connect, a third-party plugin is ended for that, where nobody can be asked who it is. */
  readonly unansweredLimitMs?: number
  /** How often is looked who waits for locks. */
  readonly lookEveryMs?: number
  /** How long a statement of a third-party plugin takes at most. */
  readonly thirdPartyStatementMs?: number
  /** A connection of a third-party plugin has been ended, for this reason. */
  readonly onEnded?: (plugin: string, reason: string) => void
}

/** `essential`: the platform serves no request without it, so the share of all other plugins does not limit it. */
export type PluginKind = 'essential' | 'built-in' | 'third-party'

interface Owner {
  readonly plugin: string
  readonly kind: PluginKind
  /** Of a third-party plugin: code in it may not run in statements of others. */
  readonly schema?: string
}

/** Of the pool: what all built-in plugins together leave to the kernel and to those it cannot do without. */
const reserved = 3
const limitOf = { essential: 8, 'built-in': 6, 'third-party': 3 } as const
/** Besides the pool: what all third-party plugins may use at a time, and how many are open before idle ones make room. */
const thirdPartyConnections = 6
const mostOpen = 12
const defaultConnections = 12
const idleTransactionMs = 30_000
const idleMs = 30_000
const closeWithinMs = 3_000
const lossesToldEveryMs = 10_000
/**
 * Longer than a third-party plugin may keep the platform waiting, so that what waits goes on when that is ended; and shorter than
 * one waits for a connection, so that those who need no lock get theirs.
 */
const lockTimeoutMs = 5_000
const blockingLimitMs = 3_000
/** Shorter than one waits for a connection. */
const unansweredLimitMs = 6_000
const lookEveryMs = 500
/** As long as a job has by itself. */
const thirdPartyStatementMs = 300_000

/** Opens the pool and sees that the server answers. */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const postgres = new Postgres(options)
  try {
    await postgres.query('select 1')
  } catch (error) {
    await postgres.close()
    throw error
  }
  return postgres
}

interface PoolSize {
  readonly max: number
  readonly idleTimeoutMillis: number
  /** Whose connections they are, for a third-party plugin. */
  readonly plugin?: string
  /** Of that plugin, where its own statements run. */
  readonly schema?: string | undefined
  readonly statementMs?: number
}

function makePool(
  { url, log, idleTransactionMs: idle, lockTimeoutMs: lockMs = lockTimeoutMs }: PostgresOptions,
  { plugin, schema, statementMs = 0, ...size }: PoolSize
): pg.Pool {
  const ours: pg.PoolConfig = {
    ...size,
    connectionTimeoutMillis: connectTimeoutMs,
    idle_in_transaction_session_timeout: idle ?? idleTransactionMs,
    lock_timeout: lockMs,
    statement_timeout: statementMs,
    keepAlive: true,
    application_name: connectionName(plugin),
    options: schema === undefined ? undefined : `-c ${guardedSchema}=${schema}`,
    types: valueTypes
  }
  const pool = new pg.Pool(connectionConfig(url, ours))
  // Without listeners, a connection that breaks ends the process: idle in the pool, or checked out.
  let toldAt = -Infinity
  pool.on('error', error => {
    const now = performance.now()
    // When the server goes, all of them are lost at once.
    const isTold = now - toldAt < lossesToldEveryMs
    if (!isTold) toldAt = now
    log[isTold ? 'debug' : 'warn']({ err: withoutClient(error) }, 'an idle connection to PostgreSQL was lost')
  })
  pool.on('connect', client => {
    client.on('error', error => {
      log.debug({ err: withoutClient(error) }, 'a connection to PostgreSQL was lost')
    })
  })
  return pool
}

/**
 * The connections of a process: one pool, of which every built-in plugin has its share, and one session. A third-party
 * plugin has connections of its own: a function, a trigger or a default of its schema can set anything for the session
 * while the statement that runs it shows nothing of that.
 */
export class Postgres extends Statements {
  readonly pool: pg.Pool
  /** A connection besides the pools, made on first use: notifications and locks. */
  readonly session: Session
  readonly locks: LockWatch
  readonly url: string
  readonly #options: PostgresOptions
  readonly #open: OpenTransactions
  readonly #clients: Set<pg.PoolClient>
  readonly #waits: () => string | undefined
  readonly #builtIns: ConnectionShare
  readonly #thirdParties: ConnectionShare
  /** By plugin: two versions of one that run side by side share theirs. */
  readonly #shares = new Map<string, ConnectionShare>()
  /** Of third-party plugins, by whose statements they are for. */
  readonly #ownPools = new Map<string, pg.Pool>()
  /** Of those pools, the connections that are in use. */
  readonly #busy = new Map<string, ReadonlySet<pg.PoolClient>>()
  /** What the kernel uses for their tables, by plugin. */
  readonly #onTables = new Map<string, Statements>()
  readonly #waitMs: number
  readonly #guards: PluginGuards

  constructor(options: PostgresOptions) {
    const { url, log, maxConnections = defaultConnections, shareWaitMs = connectTimeoutMs } = options
    const open: OpenTransactions = new WeakMap()
    const pool = makePool(options, { max: maxConnections, idleTimeoutMillis: idleMs })
    const clients = new Set<pg.PoolClient>()
    const session = new Session({ url, log })
    const pools = (): pg.Pool[] => [pool, ...this.#ownPools.values()]
    const locks = new LockWatch({
      session,
      log,
      everyMs: options.lookEveryMs ?? lookEveryMs,
      unansweredLimitMs: options.unansweredLimitMs ?? unansweredLimitMs,
      isQuiet: () => pools().every(one => one.totalCount === one.idleCount),
      isConnecting: () => pools().reduce((sum, { totalCount }) => sum + totalCount, 0) > clients.size,
      isOurs: pid => [...clients].some(client => processIdOf(client) === pid)
    })
    const waits = (): string | undefined => locks.waitsOf(clients)
    super({ connections: new Connections(pool, locks, waits), open, log })
    this.pool = pool
    this.locks = locks
    const { onEnded, blockingLimitMs: limitMs = blockingLimitMs } = options
    this.#guards = new PluginGuards({ locks, log, limitMs, onEnded })
    this.#clients = clients
    this.#waits = waits
    this.url = url
    this.#options = options
    this.#open = open
    this.#waitMs = shareWaitMs
    this.session = session
    this.#builtIns = new ConnectionShare({
      owner: 'the plugins together',
      limit: Math.max(1, maxConnections - reserved),
      waitMs: shareWaitMs,
      waits: this.#waitsWithin
    })
    this.#thirdParties = new ConnectionShare({
      owner: 'the third-party plugins together',
      limit: thirdPartyConnections,
      waitMs: shareWaitMs,
      waits: this.#waitsWithin
    })
    this.#watch(pool)
  }

  /** The same database for one plugin, on its share of the connections. Transactions may be passed from one to another. */
  for({ plugin, kind, schema }: Owner): Statements {
    const isThirdParty = kind === 'third-party'
    const share =
      this.#shares.get(plugin) ??
      new ConnectionShare({
        owner: `the plugin "${plugin}"`,
        limit: Math.min(limitOf[kind], Math.max(1, this.pool.options.max - 1)),
        waitMs: this.#waitMs,
        waits: this.#waitsWithin,
        within: isThirdParty ? this.#thirdParties : kind === 'essential' ? undefined : this.#builtIns
      })
    this.#shares.set(plugin, share)
    if (!isThirdParty) {
      this.#onTables.set(plugin, this)
      return this.#statements(plugin, new Connections(this.pool, this.locks, this.#waits, share))
    }
    const pool = this.#ownPool(plugin, { schema })
    // What its former run may have left on them is not for this one.
    closeIdle(pool)
    return this.#statements(plugin, new Connections(pool, this.locks, this.#waits, share, plugin))
  }

  /** For the kernel's own statements on tables of a plugin, in that schema: code of the plugin may run in them, and beside them. */
  onTablesOf(plugin: string, schema?: string): Statements {
    let statements = this.#onTables.get(plugin)
    if (statements === undefined) {
      const pool = this.#ownPool(plugin, { name: `${plugin}, for the kernel`, schema })
      statements = this.#statements(plugin, new Connections(pool, this.locks, this.#waits, undefined, plugin))
      this.#onTables.set(plugin, statements)
    }
    return statements
  }

  /**
   * Ends what statements of a third-party plugin are under way, for one that does not run any more: it asked for them, and nobody
   * waits for their answers. Others get its connections.
   */
  cutOff(plugin: string): void {
    for (const client of this.#busy.get(plugin) ?? []) {
      const pid = processIdOf(client)
      client.connection.stream.destroy()
      // The server would notice when it has an answer, which may be never.
      if (pid !== undefined) void this.#guards.terminate(pid, plugin)
    }
  }

  /** How much of its connections is in use now. */
  get use(): PlatformStatistics['database'] {
    const { totalCount: open, idleCount: idle, waitingCount: waiting, options } = this.pool
    return {
      pool: { limit: options.max, open, idle, waiting },
      plugins: [...this.#shares].map(([plugin, share]) => ({
        plugin,
        held: share.held,
        limit: share.options.limit,
        waiting: share.waiting
      }))
    }
  }

  /** Waits a moment for what is under way; the rest is cut off, and who it was is logged. */
  async close(): Promise<void> {
    this.locks.close()
    await this.session.close()
    const pools = [this.pool, ...this.#ownPools.values()]
    await whenLate(Promise.all(pools.map(async pool => await pool.end())), closeWithinMs, () => {
      const holders = [...this.#shares.values()]
        .filter(({ held }) => held > 0)
        .map(({ options: { owner }, held }) => `${owner}: ${held}`)
      this.#options.log.warn(
        { holders },
        'database connections were still in use when the platform stopped, and are cut off'
      )
      for (const client of this.#clients) client.connection.stream.destroy()
    })
  }

  #statements(plugin: string, connections: Connections): Statements {
    return new Statements({ connections, open: this.#open, log: this.#options.log.child({ plugin }) })
  }

  readonly #waitsWithin = (share: ConnectionShare): string | undefined =>
    this.locks.waitsOf([...this.#clients].filter(client => isHeldBy(client, share)))

  #ownPool(
    plugin: string,
    { name = plugin, schema }: { readonly name?: string; readonly schema?: string | undefined }
  ): pg.Pool {
    const known = this.#ownPools.get(name)
    if (known !== undefined) return known
    const { thirdPartyStatementMs: statementMs = thirdPartyStatementMs } = this.#options
    const pool = makePool(this.#options, {
      max: limitOf['third-party'],
      idleTimeoutMillis: idleMs,
      plugin,
      schema,
      statementMs
    })
    this.#watch(pool)
    const busy = new Set<pg.PoolClient>()
    this.#guards.guard(pool, plugin, busy)
    this.#busy.set(name, busy)
    pool.on('acquire', client => busy.add(client))
    pool.on('release', (_, client) => busy.delete(client))
    pool.on('connect', () => {
      this.#makeRoom(pool)
    })
    if (this.pool.ending) void pool.end()
    this.#ownPools.set(name, pool)
    return pool
  }

  /** Before a plugin that works now, those give way that do not. */
  #makeRoom(working: pg.Pool): void {
    const pools = [...this.#ownPools.values()]
    let over = pools.reduce((sum, { totalCount }) => sum + totalCount, 0) - mostOpen
    for (const pool of pools) {
      if (over <= 0) return
      if (pool === working) continue
      over -= pool.idleCount
      closeIdle(pool)
    }
  }

  #watch(pool: pg.Pool): void {
    pool.on('connect', client => {
      this.#clients.add(client)
    })
    pool.on('remove', client => {
      this.#clients.delete(client)
    })
  }
}

function closeIdle(pool: pg.Pool): void {
  for (let left = pool.idleCount; left > 0; left--)
    pool.connect((_, client, release) => {
      if (client !== undefined) release(true)
    })
}

/** pg hangs the client on what its pool reports: statements, buffers, and the key that cancels them. */
function withoutClient(error: Error): Error {
  Reflect.deleteProperty(error, 'client')
  return error
}
