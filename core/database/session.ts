import { EventEmitter, once } from 'node:events'
import { type Log, Serial } from 'busbar/sdk'
import pg from 'pg'
import { pause } from '../clock/waits.js'
import { connectionConfig } from './connection-config.js'
import { Outage } from './outage.js'
import { connectTimeoutMs, problems, storeError } from './problems.js'
import { valueTypes } from './value-types.js'

/** A lock held for as long as the connection lives. */
interface SessionLock {
  /** Aborts when the connection is lost, and with it the lock. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

interface Connection {
  readonly client: pg.Client
  /** Resolves when the connection has ended, for whatever reason. */
  readonly ended: Promise<void>
  readonly lost: AbortSignal
  readonly heldNames: Set<string>
}

const firstRetryMs = 100
const lastRetryMs = 5000
const heartbeatMs = 10_000
const lockTimeoutMs = 3_000

/**
 * The one connection of a process that is never given back, for what is bound to a connection: LISTEN
 * and advisory locks. It connects on first use and again, with growing pauses, whenever it is lost.
 */
export class Session {
  readonly #closed = new AbortController()
  readonly #channels = new Set<string>()
  /** `connect`, `refused` with the name of a lock, and `on <channel>` with what was notified. */
  readonly #events = new EventEmitter().setMaxListeners(0)
  #connection: Connection | undefined
  #running: Promise<void> | undefined
  #unansweredSince: number | undefined
  /** One at a time: pg is about to stop queueing them itself. */
  readonly #queries = new Serial()

  constructor(private readonly options: { readonly url: string; readonly log: Log }) {}

  get isConnected(): boolean {
    return this.#connection !== undefined
  }

  /** Since when the server has had an attempt to connect without having answered, by the process's clock. */
  get unansweredSince(): number | undefined {
    return this.#unansweredSince
  }

  /** Resolves when the connection stands. */
  async connected(signal?: AbortSignal): Promise<Connection> {
    const aborts = [this.#closed.signal, signal].filter(one => one !== undefined)
    if (aborts.some(({ aborted }) => aborted)) throw problems.unreachable()
    this.#running ??= this.#run()
    while (this.#connection === undefined) {
      await once(this.#events, 'connect', { signal: AbortSignal.any(aborts) }).catch(() => {
        throw problems.unreachable()
      })
    }
    return this.#connection
  }

  /** Throws a 503 at once while there is no connection. With a name it is prepared. */
  async query<Row extends object>(text: string, values?: unknown[], name?: string): Promise<Row[]> {
    const connection = this.#connection
    if (connection === undefined) throw problems.unreachable()
    try {
      const answer = await this.#queries.run(
        async () => await connection.client.query<Row>({ text, values, name })
      )
      return answer.rows
    } catch (error) {
      throw storeError(error)
    }
  }

  /** Calls back with what is notified on the channel, until the returned function is called. */
  async listen(channel: string, onPayload: (payload: string) => void): Promise<() => void> {
    this.#channels.add(channel)
    this.#events.on(`on ${channel}`, onPayload)
    await this.connected()
    // Again for a channel that is listened to already: it costs nothing and saves asking whether it is.
    await this.query(`listen ${pg.escapeIdentifier(channel)}`)
    return () => {
      this.#events.off(`on ${channel}`, onPayload)
    }
  }

  /** Runs after every connect from now on, when LISTEN is in force again. */
  onConnect(run: () => void): () => void {
    this.#events.on('connect', run)
    return () => {
      this.#events.off('connect', run)
    }
  }

  /** Calls back with the name of each lock that another connection has. */
  onRefusedLock(run: (name: string) => void): () => void {
    this.#events.on('refused', run)
    return () => {
      this.#events.off('refused', run)
    }
  }

  /** The lock of this name, unless another process, or another holder in this one, has it. Waits for a connection until `signal`. */
  async tryLock(name: string, signal?: AbortSignal): Promise<SessionLock | undefined> {
    const { lost, heldNames } = await this.connected(signal)
    // The server would grant a second lock to the same connection.
    if (heldNames.has(name)) return undefined
    heldNames.add(name)
    let isHeld = false
    let isRefused = false
    try {
      const [row] = await this.query<{ locked: boolean }>(
        'select pg_try_advisory_lock(hashtextextended($1, 0)) as locked',
        [name]
      )
      isRefused = row?.locked === false
      isHeld = row?.locked === true && !lost.aborted
    } finally {
      if (!isHeld) heldNames.delete(name)
    }
    if (isRefused) this.#events.emit('refused', name)
    if (!isHeld) return undefined
    return {
      lost,
      release: async () => {
        if (lost.aborted) return
        try {
          await this.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name])
        } finally {
          heldNames.delete(name)
        }
      }
    }
  }

  /** Runs `work` under the lock; false when it cannot be had. `stop` aborts with the signal and when the lock is lost. */
  async underLock(
    name: string,
    signal: AbortSignal,
    work: (stop: AbortSignal) => Promise<void>
  ): Promise<boolean> {
    const lock = await this.tryLock(name, signal).catch(() => undefined)
    if (lock === undefined) return false
    try {
      await work(AbortSignal.any([signal, lock.lost]))
    } finally {
      await lock.release().catch(() => {})
    }
    return true
  }

  async close(): Promise<void> {
    this.#closed.abort()
    await this.#connection?.client.end().catch(() => {})
    await this.#running
  }

  async #run(): Promise<void> {
    const { log } = this.options
    const { signal } = this.#closed
    const outage = new Outage(log, {
      begins: 'the connection for notifications and locks could not be made, and is tried again and again',
      ends: 'the connection for notifications and locks stands again'
    })
    for (let waitMs = firstRetryMs; !signal.aborted; waitMs = Math.min(waitMs * 2, lastRetryMs)) {
      try {
        const { ended } = await this.#open()
        waitMs = firstRetryMs
        outage.over()
        await ended
        if (!signal.aborted) log.warn('the connection for notifications and locks was lost')
      } catch (error) {
        if (!signal.aborted) outage.note(error)
      }
      await pause(waitMs, signal)
    }
  }

  async #open(): Promise<Connection> {
    const { url, log } = this.options
    const ours: pg.ClientConfig = {
      connectionTimeoutMillis: connectTimeoutMs,
      application_name: 'busbar session',
      keepAlive: true,
      // Nothing here waits for a lock, unless somebody has the catalogs locked; and before the heartbeat takes that for a failure.
      lock_timeout: lockTimeoutMs,
      statement_timeout: 0,
      types: valueTypes
    }
    const client = new pg.Client(connectionConfig(url, ours))
    const lost = new AbortController()
    const ended = new Promise<void>(resolve => {
      client.once('end', resolve)
    })
    client.on('error', error => {
      log.debug({ err: error }, 'the connection for notifications and locks failed')
    })
    client.on('notification', ({ channel, payload }) => {
      this.#events.emit(`on ${channel}`, payload ?? '')
    })
    client.connection.once('connect', () => {
      this.#unansweredSince = performance.now()
    })
    try {
      await client.connect().finally(() => {
        this.#unansweredSince = undefined
      })
      for (const channel of this.#channels) await client.query(`listen ${pg.escapeIdentifier(channel)}`)
      if (this.#closed.signal.aborted) throw problems.unreachable()
    } catch (error) {
      await client.end().catch(() => {})
      throw error
    }
    const connection = { client, ended, lost: lost.signal, heldNames: new Set<string>() }
    this.#connection = connection
    const heartbeat = setInterval(() => {
      void this.#check(client)
    }, heartbeatMs).unref()
    void ended.then(() => {
      clearInterval(heartbeat)
      this.#connection = undefined
      lost.abort()
    })
    this.#events.emit('connect')
    return connection
  }

  /** A peer that is gone without closing is noticed only by a query. */
  async #check(client: pg.Client): Promise<void> {
    const silent = setTimeout(() => {
      client.connection.stream.destroy()
    }, heartbeatMs / 2)
    await this.query('select 1').catch(() => {})
    clearTimeout(silent)
  }
}
