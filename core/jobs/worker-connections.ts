import type { Log } from 'busbar/sdk'
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import { pause, untilAborted } from '../clock/waits.js'
import { Outage } from '../database/outage.js'
import { errorCode, isConnectionError, lockNotAvailable, mayPass } from '../database/problems.js'

interface WorkerConnectionsOptions {
  readonly pool: Pool
  readonly log: Log
  /** Resolves when the worker may touch the queue. */
  ready(): Promise<void>
  /** A fetch broke off: whether it locked a job is not known. */
  onFetchLost(): void
  /** Failures have been recorded, and jobs of these ids are unlocked. */
  onFailed(jobIds: readonly string[]): Promise<void>
  /** There may be another job to take: one has been found, or a queue has been unlocked. */
  onMore(): void
}

/** A worker that gets an error while it ends prints it to the console; of an empty answer it makes nothing. */
const nothing: QueryResult = { rows: [], rowCount: 0, command: '', oid: 0, fields: [] }
/**
 * A fetch locks each queue that it looks through, those of jobs of other lanes too, and passes over those that another one
 * has locked, so of two at a time one may see nothing to do and sleep until the next poll. Those of a process take turns.
 */
const fetches = new WeakMap<Pool, Promise<void>>()
const firstRetryMs = 50
const lastRetryMs = 2000

/**
 * The pool as graphile-worker sees it. The library ends its workers, or the process, when the database
 * is away or has no room at the wrong moment; here its statements wait until they are answered, and for a lock until they have it.
 */
export class WorkerConnections {
  readonly #ended = new AbortController()
  readonly #untilEnded = untilAborted(this.#ended.signal)
  readonly #outage: Outage

  constructor(private readonly options: WorkerConnectionsOptions) {
    this.#outage = new Outage(options.log, {
      begins: 'jobs wait until PostgreSQL answers their workers',
      ends: 'PostgreSQL answers the workers of jobs again'
    })
  }

  /** From now on nothing waits any more. */
  end(): void {
    this.#ended.abort()
  }

  /** graphile-worker asks for a pg.Pool and calls nothing but connect() on it. */
  asPool(): Pool {
    const connect = (
      onConnect?: (error: undefined, client: object, release: () => void) => void
    ): Promise<object> | undefined => {
      const client = {
        query: async (query: QueryConfig) => await this.#query(query),
        release: () => {},
        on: () => {},
        removeListener: () => {}
      }
      if (onConnect === undefined) return Promise.resolve(client)
      // This one is for LISTEN; the lanes are notified of new jobs by the process's own session.
      onConnect(undefined, { ...client, query: async () => ({ rows: [] }) }, () => {})
    }
    return { connect } as unknown as Pool
  }

  async #query(query: QueryConfig): Promise<QueryResult> {
    const { pool, onFetchLost } = this.options
    const name = query.name ?? ''
    // Unlocking by age would let a job of more than four hours run twice; job-store.ts unlocks by life.
    if (name.startsWith('clear_stale_locks')) return nothing
    for (let waitMs = firstRetryMs; ; waitMs = Math.min(waitMs * 2, lastRetryMs)) {
      await Promise.race([this.options.ready(), this.#untilEnded])
      if (this.#ended.signal.aborted) return nothing
      let client: PoolClient | undefined
      let isBroken = false
      const before = name.startsWith('get_job') ? fetches.get(pool) : undefined
      let endTurn = (): void => {}
      if (name.startsWith('get_job'))
        fetches.set(
          pool,
          new Promise(resolve => {
            endTurn = resolve
          })
        )
      await before
      try {
        client = await pool.connect()
        const result = await client.query(query)
        client.release()
        client = undefined
        this.#outage.over()
        await this.#settled(name, query.values ?? [], result)
        return result
      } catch (error) {
        isBroken = isConnectionError(error)
        if (!mayPass(error) && errorCode(error) !== lockNotAvailable) throw error
        if (isBroken && client !== undefined && name.startsWith('get_job')) {
          onFetchLost()
          return nothing
        }
        // A lock that is not had is told by those who watch over locks.
        if (mayPass(error) && !this.#ended.signal.aborted) this.#outage.note(error)
      } finally {
        client?.release(isBroken)
        endTurn()
      }
      await pause(waitMs, this.#ended.signal)
    }
  }

  async #settled(name: string, values: readonly unknown[], { rows }: QueryResult): Promise<void> {
    const { onFailed, onMore } = this.options
    if (name.startsWith('fail_job/') || name.startsWith('fail_job_q/')) {
      const failures: ReadonlyArray<{ jobId: string | number }> = JSON.parse(String(values[1]))
      await onFailed(failures.map(({ jobId }) => String(jobId)))
    }
    if (
      name.startsWith('complete_job_q/') ||
      name.startsWith('fail_job_q/') ||
      (name.startsWith('get_job') && rows.length > 0)
    )
      onMore()
  }
}
