import type { Jobs, Log, Tx } from 'busbar/sdk'
import { whenLate } from '../clock/waits.js'
import type { Postgres } from '../database/postgres.js'
import type { Task } from './graphile-worker.js'
import { type Execution, execute, Interrupted } from './job-execution.js'
import { JobStore, type LaneStatus, type Return, unwrap, wakeChannel } from './job-store.js'
import { Lane } from './lane.js'
import { identifierOf, type LaneName, type RecordedJob, type Submission } from './recorded-job.js'
import { WorkerShare } from './worker-share.js'

export type { RecordedJob } from './recorded-job.js'

export interface JobsOptions {
  readonly postgres: Postgres
  readonly log: Log
  /** Workers per lane. */
  readonly lanes?: Readonly<Record<LaneName, number>>
}

const unlockEveryMs = 30_000
const nudgeAgainMs = 100
const defaultAttempts = 5
const longestIdentifier = 128

type Declared = Pick<RecordedJob, 'name' | 'attempts'>
interface PluginJobs {
  readonly jobs: ReadonlyMap<string, RecordedJob>
  isTaken: boolean
  /** A third-party plugin, or one whose jobs wait for tenants: it has a share of the workers. */
  readonly isLimited: boolean
}

/**
 * Durable jobs on graphile-worker. Holds no connection of the pool while idle: locks and wake-ups use
 * the session of `postgres`, a fetch or an answer takes a connection for a millisecond.
 */
export class JobRunner {
  readonly #store: JobStore
  readonly #lanes: Readonly<Record<LaneName, Lane>>
  readonly #plugins = new Map<string, PluginJobs>()
  /** How often each job of a plugin is tried, by plugin and name. */
  readonly #declared = new Map<string, ReadonlyMap<string, number>>()
  readonly #running = new Set<Execution>()
  /** Jobs whose run was cut off, by id, until their failure has been recorded. */
  readonly #returns = new Map<string, Return>()
  readonly #share: WorkerShare
  readonly #log: Log
  readonly #postgres: Postgres
  #stopListening: (() => void) | undefined
  #timer: NodeJS.Timeout | undefined

  constructor({ postgres, log, lanes = { short: 6, long: 12 } }: JobsOptions) {
    this.#postgres = postgres
    this.#log = log
    this.#store = new JobStore(postgres, log)
    this.#share = new WorkerShare(lanes)
    const lane = (name: LaneName): Lane =>
      new Lane({
        name,
        workers: lanes[name],
        postgres,
        log,
        onFailed: async ids => {
          await this.#giveBack(ids)
        },
        onWorkersEnded: () => {
          void this.#unlock()
        }
      })
    // In this order they are told of new jobs, and look for them one after the other: people watch the long ones.
    this.#lanes = { long: lane('long'), short: lane('short') }
  }

  /** Says which jobs a plugin has before it takes them: it may enqueue while it starts. */
  declare(plugin: string, jobs: readonly Declared[]): void {
    this.#declared.set(plugin, new Map(jobs.map(({ name, attempts }) => [name, attempts])))
  }

  /** Whether the plugin declares a job of this name, taken or not. */
  has(plugin: string, name: string): boolean {
    return this.#declared.get(plugin)?.has(name) === true
  }

  /** Makes a plugin's jobs known and, once started, takes them. A later call replaces what an earlier one gave. */
  async add(
    plugin: string,
    jobs: readonly RecordedJob[],
    { isLimited = false }: { readonly isLimited?: boolean } = {}
  ): Promise<void> {
    const tooLong = jobs.find(({ name }) => Buffer.byteLength(identifierOf(plugin, name)) > longestIdentifier)
    if (tooLong !== undefined) throw new Error(`the name of the job ${tooLong.name} of ${plugin} is too long`)
    this.#leave(plugin)
    this.declare(plugin, jobs)
    this.#plugins.set(plugin, { jobs: new Map(jobs.map(job => [job.name, job])), isTaken: true, isLimited })
    for (const { name, lane } of jobs)
      this.#lanes[lane].take(identifierOf(plugin, name), this.#task(plugin, name))
    this.#fit()
    // Jobs that waited for the plugin are not announced again.
    for (const lane of Object.values(this.#lanes)) lane.nudge()
  }

  /** Takes no more jobs of the plugin and resolves when those that run have ended; after `drainMs` their signal aborts. What waits, waits. */
  async remove(plugin: string, { drainMs = 0 }: { readonly drainMs?: number } = {}): Promise<void> {
    this.#leave(plugin)
    await this.#end(run => run.plugin === plugin, drainMs)
  }

  /** Ends the runs that began before the last `add`: those of a plugin's former version. */
  async retire(plugin: string): Promise<void> {
    const current = this.#plugins.get(plugin)?.jobs
    await this.#end(run => run.plugin === plugin && current?.get(run.job.name) !== run.job)
  }

  async start(): Promise<void> {
    await this.#store.prepare()
    this.#stopListening = await this.#postgres.session.listen(wakeChannel, payload => {
      const count = announcedJobs(payload)
      if (count > 0)
        for (const lane of Object.values(this.#lanes)) {
          lane.nudge(count)
          // A worker of another process may have been in the way of that fetch without having a use for the job itself.
          setTimeout(() => {
            lane.nudge(count)
          }, nudgeAgainMs).unref()
        }
    })
    for (const lane of Object.values(this.#lanes)) lane.start()
    await this.#unlock()
    this.#timer = setInterval(() => {
      void this.#unlock()
    }, unlockEveryMs).unref()
  }

  async stop(): Promise<void> {
    this.#stopListening?.()
    clearInterval(this.#timer)
    const ended = this.#end(() => true)
    await Promise.all(
      Object.values(this.#lanes).map(async lane => {
        await lane.stop(ended)
      })
    )
  }

  for(plugin: string): Jobs {
    return Object.freeze<Jobs>({
      enqueue: async (name, payload, options, tx) => {
        if (!this.has(plugin, name)) throw new Error(`the plugin "${plugin}" declares no job "${name}"`)
        await this.submit([{ plugin, name, payload, ...options }], tx)
      }
    })
  }

  /** Stores work for any plugin, whether its jobs are being taken or not. */
  async submit(submissions: readonly Submission[], tx?: Tx): Promise<void> {
    if (submissions.length === 0) return
    await this.#store.add(
      submissions.map(submission => ({
        ...submission,
        attempts:
          this.#declared.get(submission.plugin)?.get(submission.name) ??
          submission.attempts ??
          defaultAttempts
      })),
      tx
    )
  }

  async status(): Promise<readonly LaneStatus[]> {
    return await this.#store.status(
      [...this.#plugins].flatMap(([plugin, { jobs }]) =>
        [...jobs.values()].filter(({ lane }) => lane === 'long').map(({ name }) => identifierOf(plugin, name))
      )
    )
  }

  #leave(plugin: string): void {
    const known = this.#plugins.get(plugin)
    if (known === undefined) return
    known.isTaken = false
    for (const { name, lane } of known.jobs.values()) this.#lanes[lane].leave(identifierOf(plugin, name))
  }

  /** The jobs of a plugin whose share is used up are not fetched until one of them has ended. */
  #fit(): void {
    for (const [plugin, { jobs, isTaken, isLimited }] of this.#plugins) {
      if (!isTaken || !isLimited) continue
      for (const { name, lane } of jobs.values()) {
        const identifier = identifierOf(plugin, name)
        if (this.#share.isUsedUp(plugin, lane)) this.#lanes[lane].leave(identifier)
        else this.#lanes[lane].take(identifier, this.#task(plugin, name))
      }
    }
  }

  #task(plugin: string, name: string): Task {
    return async (stored, { job: { id, attempts, max_attempts: maxAttempts } }) => {
      const known = this.#plugins.get(plugin)
      const job = known?.jobs.get(name)
      const jobId = String(id)
      if (known?.isTaken !== true || job === undefined) {
        // Fetched in the moment in which the plugin was turned off: it has not run.
        this.#returns.set(jobId, { id: jobId, attempts: attempts - 1, maxAttempts })
        throw new Interrupted(`the plugin ${plugin} is off`)
      }
      if (known.isLimited && this.#share.isUsedUp(plugin, job.lane)) {
        // Fetched in the moment in which its share was used up.
        this.#returns.set(jobId, { id: jobId, attempts: attempts - 1, maxAttempts })
        throw new Interrupted(`the plugin ${plugin} has its share of the workers`)
      }
      const execution = execute(
        plugin,
        job,
        unwrap(stored),
        { id: jobId, number: attempts, of: maxAttempts },
        this.#log
      )
      this.#running.add(execution)
      if (known.isLimited) {
        this.#share.take(plugin, job.lane)
        this.#fit()
      }
      try {
        await execution.result
      } catch (error) {
        // One attempt more than it had: an interruption does not count as a failure.
        if (error instanceof Interrupted)
          this.#returns.set(jobId, { id: jobId, attempts, maxAttempts: maxAttempts + 1 })
        throw error
      } finally {
        this.#running.delete(execution)
        if (known.isLimited) {
          this.#share.give(plugin, job.lane)
          this.#fit()
          this.#lanes[job.lane].nudge(1)
        }
      }
    }
  }

  async #end(isConcerned: (run: Execution) => boolean, drainMs = 0): Promise<void> {
    const runs = [...this.#running].filter(isConcerned)
    await whenLate(Promise.allSettled(runs.map(({ result }) => result)), drainMs, () => {
      for (const { interrupt } of runs) interrupt(new Error('the plugin or the platform is stopping'))
    })
  }

  async #giveBack(ids: readonly string[]): Promise<void> {
    const jobs = ids.flatMap(id => this.#returns.get(id) ?? [])
    if (jobs.length === 0) return
    for (const { id } of jobs) this.#returns.delete(id)
    await this.#store.giveBack(jobs)
    await this.#store.wake(jobs.length)
  }

  async #unlock(): Promise<void> {
    const count = await this.#store.unlockDead().catch((error: unknown) => {
      this.#log.debug({ err: error }, 'jobs of dead workers could not be looked for')
    })
    if (count !== undefined && count > 0)
      this.#log.warn({ workers: count }, 'jobs of workers that have died were unlocked')
  }
}

/** How many jobs a notification announces. Any database user may send one, of any text. */
function announcedJobs(payload: string): number {
  const count = /"count":(\d{1,9})\}$/.exec(payload)?.[1]
  return count === undefined ? 0 : Number(count)
}
