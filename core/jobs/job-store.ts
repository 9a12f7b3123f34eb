import type { Log, Tx } from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import { errorCode, lockNotAvailable } from '../database/problems.js'
import { runMigrations } from './graphile-worker.js'
import { identifierOf, type LaneName, type Submission } from './recorded-job.js'
import { workerLockName } from './worker-lock.js'
import { workerLog } from './worker-log.js'

/** Notified when there may be something to do: graphile-worker's own channel. */
export const wakeChannel = 'jobs:insert'

/** A lane's jobs in all processes. */
export interface LaneStatus {
  readonly lane: LaneName
  /** Waiting for the first time, for a worker or for its time. */
  readonly pending: number
  readonly active: number
  /** Waiting after an attempt that failed. */
  readonly retry: number
  /** Out of attempts, kept for inspection. */
  readonly failed: number
}

/** A job that goes back to the queue as if it had not been interrupted. */
export interface Return {
  readonly id: string
  readonly attempts: number
  readonly maxAttempts: number
}

/** Of the pool's five seconds each. */
const mostLockWaits = 12

/** Of two arrays under one key the library would make one: what is stored is always an object. */
const wrap = (payload: object): object => ({ payload })
export const unwrap = (stored: unknown): unknown =>
  typeof stored === 'object' && stored !== null && 'payload' in stored ? stored.payload : stored

/** The tables of graphile-worker, through the functions it publishes. */
export class JobStore {
  readonly #add: (args: [string], tx?: Tx) => Promise<object[]>
  #prepared: Promise<void> | undefined

  constructor(
    private readonly postgres: Postgres,
    private readonly log: Log
  ) {
    this.#add = postgres.statement(
      'graphile_worker.add_jobs',
      'select 1 from graphile_worker.add_jobs(array(select json_populate_recordset(null::graphile_worker.job_spec, $1::json)))'
    )
  }

  /** Makes the tables, once; one query when they are there. */
  async prepare(): Promise<void> {
    this.#prepared ??= this.#migrate().catch(error => {
      this.#prepared = undefined
      throw error
    })
    await this.#prepared
  }

  /** Several processes that start at once wait for each other's. */
  async #migrate(left = mostLockWaits): Promise<void> {
    try {
      await runMigrations({ pgPool: this.postgres.pool, logger: workerLog(this.log) })
    } catch (error) {
      if (left === 0 || errorCode(error) !== lockNotAvailable) throw error
      await this.#migrate(left - 1)
    }
  }

  async add(submissions: ReadonlyArray<Submission & { readonly attempts: number }>, tx?: Tx): Promise<void> {
    await this.prepare()
    const specs = submissions.map(({ plugin, name, payload, key, queue, runAt, attempts }) => ({
      identifier: identifierOf(plugin, name),
      payload: wrap(payload),
      queue_name: queue === undefined ? undefined : identifierOf(plugin, queue),
      run_at: runAt,
      max_attempts: attempts,
      job_key: key === undefined ? undefined : `${identifierOf(plugin, name)}:${key}`
    }))
    await this.#add([JSON.stringify(specs)], tx)
  }

  async giveBack(jobs: readonly Return[]): Promise<void> {
    for (const { id, attempts, maxAttempts } of jobs) {
      await this.postgres.query(
        'select 1 from graphile_worker.reschedule_jobs(array[$1::bigint], run_at => now(), attempts => $2, max_attempts => $3)',
        [id, attempts, maxAttempts]
      )
    }
  }

  /** Unlocks what workers hold whose process has died, and says how many workers that were. */
  async unlockDead(): Promise<number> {
    const [found] = await this.postgres.query<{ ids: string[] | null }>(
      `
      with holder as materialized (select distinct locked_by as id from graphile_worker.jobs where locked_by is not null)
      select array_agg(id) as ids from holder where pg_try_advisory_xact_lock(hashtextextended($1 || id, 0))`,
      [workerLockName('')]
    )
    const ids = found?.ids ?? []
    if (ids.length === 0) return 0
    await this.postgres.query('select graphile_worker.force_unlock_workers($1)', [ids])
    await this.wake(ids.length)
    return ids.length
  }

  async wake(count: number): Promise<void> {
    await this.postgres.query('select pg_notify($1, $2)', [wakeChannel, JSON.stringify({ count })])
  }

  /** The short lane, then the long one, which has the jobs of these identifiers. */
  async status(longJobs: readonly string[]): Promise<readonly LaneStatus[]> {
    await this.prepare()
    return await this.postgres.query<LaneStatus>(
      `
      select lane,
        count(*) filter (where locked_at is null and attempts = 0) as pending,
        count(*) filter (where locked_at is not null) as active,
        count(*) filter (where locked_at is null and attempts > 0 and attempts < max_attempts) as retry,
        count(*) filter (where locked_at is null and attempts >= max_attempts) as failed
      from (values ('short', false), ('long', true)) as lanes (lane, is_long)
      left join graphile_worker.jobs on (task_identifier = any($1)) = is_long
      group by lane, is_long order by is_long`,
      [longJobs]
    )
  }
}
