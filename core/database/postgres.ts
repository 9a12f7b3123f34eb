import type { Log } from 'busbar/sdk'
import pg from 'pg'
import { whenLate } from '../clock/waits.js'
import { ConnectionShare } from './connection-share.js'
import { Connections } from './connections.js'
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
}

/** `essential`: the platform serves no request without it, so the share of all other plugins does not limit it. */
export type PluginKind = 'essential' | 'built-in' | 'third-party'

/** Of the pool: what all plugins together leave to the kernel and to those it cannot do without. */
const reserved = 3
const limitOf = { essential: 8, 'built-in': 6, 'third-party': 3 } as const
const defaultConnections = 12
const idleTransactionMs = 30_000
const closeWithinMs = 3_000

/** Opens the pool and sees that the server answers. */
export async function openPostgres(options: PostgresOptions): Promise<Postgres> {
  const { url, log, maxConnections = defaultConnections } = options
  const pool = new pg.Pool({
    connectionString: url,
    max: maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: 30_000,
    idle_in_transaction_session_timeout: options.idleTransactionMs ?? idleTransactionMs,
    keepAlive: true,
    application_name: 'busbar',
    types: valueTypes
  })
  // Without listeners, a connection that breaks ends the process: idle in the pool, or checked out.
  pool.on('error', error => {
    log.warn({ err: withoutClient(error) }, 'an idle connection to PostgreSQL was lost')
  })
  pool.on('connect', client => {
    client.on('error', error => {
      log.debug({ err: withoutClient(error) }, 'a connection to PostgreSQL was lost')
    })
  })

  const postgres = new Postgres(pool, options)
  try {
    await postgres.query('select 1')
  } catch (error) {
    await pool.end()
    throw error
  }
  return postgres
}

/** The connections of a process: one pool, of which every plugin has its share, and one session. */
export class Postgres extends Statements {
  /** A connection besides the pool, made on first use: notifications and locks. */
  readonly session: Session
  readonly url: string
  readonly #log: Log
  readonly #open: OpenTransactions
  readonly #clients = new Set<pg.PoolClient>()
  readonly #plugins: ConnectionShare
  /** By plugin: two versions of one that run side by side share theirs. */
  readonly #shares = new Map<string, ConnectionShare>()
  readonly #waitMs: number

  constructor(
    readonly pool: pg.Pool,
    { url, log, shareWaitMs = connectTimeoutMs }: PostgresOptions
  ) {
    const open: OpenTransactions = new WeakMap()
    super({ connections: new Connections(pool), open, log })
    this.url = url
    this.#log = log
    this.#open = open
    this.#waitMs = shareWaitMs
    this.session = new Session({ url, log })
    this.#plugins = new ConnectionShare({
      owner: 'the plugins together',
      limit: Math.max(1, pool.options.max - reserved),
      waitMs: shareWaitMs
    })
    pool.on('connect', client => {
      this.#clients.add(client)
    })
    pool.on('remove', client => {
      this.#clients.delete(client)
    })
  }

  /** The same database for one plugin, on its share of the pool. Transactions may be passed from one to another. */
  for({ plugin, kind }: { readonly plugin: string; readonly kind: PluginKind }): Statements {
    const share =
      this.#shares.get(plugin) ??
      new ConnectionShare({
        owner: `the plugin "${plugin}"`,
        limit: Math.min(limitOf[kind], Math.max(1, this.pool.options.max - 1)),
        waitMs: this.#waitMs,
        within: kind === 'essential' ? undefined : this.#plugins
      })
    this.#shares.set(plugin, share)
    return new Statements({
      connections: new Connections(this.pool, share),
      open: this.#open,
      log: this.#log.child({ plugin })
    })
  }

  /** Waits a moment for what is under way; the rest is cut off, and who it was is logged. */
  async close(): Promise<void> {
    await this.session.close()
    await whenLate(this.pool.end(), closeWithinMs, () => {
      const holders = [...this.#shares.values()]
        .filter(({ held }) => held > 0)
        .map(({ options: { owner }, held }) => `${owner}: ${held}`)
      this.#log.warn(
        { holders },
        'database connections were still in use when the platform stopped, and are cut off'
      )
      for (const client of this.#clients) client.connection.stream.destroy()
    })
  }
}

/** pg hangs the client on what its pool reports: statements, buffers, and the key that cancels them. */
function withoutClient(error: Error): Error {
  Reflect.deleteProperty(error, 'client')
  return error
}
