import type { Log } from 'busbar/sdk'
import type { Postgres } from '../database/postgres.js'
import { runTaskList, type Task, type TaskList, type WorkerPool } from './graphile-worker.js'
import { WorkerConnections } from './worker-connections.js'
import { WorkerLock } from './worker-lock.js'
import { workerLog } from './worker-log.js'

interface LaneOptions {
  readonly name: string
  readonly workers: number
  readonly postgres: Postgres
  readonly log: Log
  onFailed(jobIds: readonly string[]): Promise<void>
  /** Workers have ended; what they still hold is to be unlocked. */
  onWorkersEnded(): void
}

interface Workers {
  readonly pool: WorkerPool
  readonly lock: WorkerLock
  readonly connections: WorkerConnections
  readonly polls: NodeJS.Timeout
}

/**
 * How often a lane looks for jobs whose time has come. New jobs wake it at once. One of its workers looks, and each that finds
 * one wakes another: if all of them looked by themselves, that would be most of what a platform does that has nothing to do.
 */
const pollMs = 4000
/** How often each worker looks all the same. */
const workerPollMs = 120_000
const flushLimitMs = 5000

/** Workers that take jobs of one kind, and the list of what they take. */
export class Lane {
  /**
   * graphile-worker reads the keys of this object before every fetch, so that the list can change while
   * it runs. A key that is not enumerable is not fetched, and still found by a fetch under way.
   */
  readonly #tasks: TaskList = { 'kernel:nothing': async () => {} }
  #workers: Workers | undefined
  readonly #draining = new Map<Promise<void>, Workers>()

  constructor(private readonly options: LaneOptions) {}

  take(identifier: string, task: Task): void {
    Object.defineProperty(this.#tasks, identifier, {
      value: task,
      enumerable: true,
      configurable: true,
      writable: true
    })
  }

  leave(identifier: string): void {
    const value = this.#tasks[identifier]
    if (value !== undefined)
      Object.defineProperty(this.#tasks, identifier, {
        value,
        enumerable: false,
        configurable: true,
        writable: true
      })
  }

  start(): void {
    const { postgres, workers: concurrency, log, onFailed } = this.options
    const connections: WorkerConnections = new WorkerConnections({
      pool: postgres.pool,
      log,
      ready: async () => {
        await lock.ready()
      },
      onFetchLost: () => {
        this.#replace(connections)
      },
      onFailed,
      onMore: () => {
        this.nudge(1)
      }
    })
    const pool = runTaskList(
      {
        concurrency,
        pollInterval: workerPollMs,
        noHandleSignals: true,
        logger: workerLog(log),
        // Answers are recorded in a batch of one tick: the only way in which the library handles their errors.
        preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } }
      },
      this.#tasks,
      connections.asPool()
    )
    const lock = new WorkerLock(postgres.session, pool.id)
    const polls = setInterval(() => {
      this.nudge(1)
    }, pollMs).unref()
    this.#workers = { pool, lock, connections, polls }
    pool.promise
      .catch(() => {})
      .finally(() => {
        this.#replace(connections)
      })
  }

  /** Tells up to `count` workers that there may be something to do. */
  nudge(count = this.options.workers): void {
    try {
      this.#workers?.pool.nudge(count)
    } catch {
      // The workers have just ended by themselves, and new ones look for jobs when they start.
    }
  }

  /** Takes no more jobs. Resolves when the workers have ended, soon after `jobsEnded`, also without a database. */
  async stop(jobsEnded: Promise<unknown>): Promise<void> {
    this.#retire()
    let timer: NodeJS.Timeout | undefined
    void jobsEnded.then(() => {
      timer = setTimeout(() => {
        for (const { connections } of this.#draining.values()) connections.end()
      }, flushLimitMs)
    })
    await Promise.all(this.#draining.keys())
    clearTimeout(timer)
  }

  /** New workers under a new id: what the old ones may have locked without knowing is unlocked when they end. */
  #replace(connections: WorkerConnections): void {
    if (this.#workers?.connections !== connections) return
    this.options.log.warn({ lane: this.options.name }, 'the workers of a lane are replaced')
    this.#retire()
    this.start()
  }

  #retire(): void {
    const workers = this.#workers
    if (workers === undefined) return
    this.#workers = undefined
    clearInterval(workers.polls)
    const drained = this.#drain(workers).finally(() => {
      this.#draining.delete(drained)
    })
    this.#draining.set(drained, workers)
  }

  async #drain({ pool, lock, connections }: Workers): Promise<void> {
    await Promise.resolve(pool.gracefulShutdown()).catch(() => {})
    connections.end()
    await lock.release()
    this.options.onWorkersEnded()
  }
}
