import { createHash } from 'node:crypto'
import {
  type Clock,
  isProblem,
  type JobSchedule,
  type Log,
  type Schedules,
  type ScheduleTimes,
  type Tx
} from 'busbar/sdk'
import type { Signals } from '../database/listener.js'
import { errorCode } from '../database/problems.js'
import { defaultTimeZone, nextTime, nextTimes } from '../declarations/recurrence.js'
import type { Submission } from '../jobs/recorded-job.js'
import { decideFiring } from './due.js'
import { declaredKey, jobNameOf, type RecordedSchedule } from './recorded-schedule.js'
import type { NewSchedule, ScheduleRow, ScheduleStore } from './schedule-store.js'

interface SchedulerParts {
  readonly store: ScheduleStore
  readonly jobs: {
    submit(submissions: readonly Submission[], tx?: Tx): Promise<void>
    has(plugin: string, job: string): boolean
  }
  readonly signals: Pick<Signals, 'signal' | 'onSignal'>
  readonly clock: Clock
  readonly log: Log
}

const changedTopic = 'schedules'
/** A due time that was not announced (another process's clock, a plugin turned on) is met this late at most. */
const longestSleepMs = 30_000
const batchSize = 100
const longestKey = 200

/** Turns times into durable jobs. Every process keeps its plugins' schedules; `run` is for one process at a time. */
export class Scheduler {
  /** Plugins whose times count now. One that is off misses its times. */
  readonly #active = new Set<string>()

  constructor(private readonly parts: SchedulerParts) {}

  for(plugin: string): Schedules {
    const { store, clock, jobs } = this.parts
    return Object.freeze<Schedules>({
      set: async (key, schedule, tx) => {
        if (key === '' || key.length > longestKey)
          throw new Error(`the key of a schedule has 1 to ${longestKey} characters`)
        if (!jobs.has(plugin, schedule.job))
          throw new Error(`the plugin "${plugin}" declares no job "${schedule.job}"`)
        const [row] = await store.put(
          [{ ...this.#whole(plugin, schedule), key: `set:${key}`, isDeclared: false }],
          tx
        )
        await this.#tell(tx)
        return { nextAt: row?.next_at ?? null, lastAt: row?.last_at ?? null }
      },
      remove: async (key, tx) => {
        await store.remove(plugin, `set:${key}`, tx)
      },
      times: async keys => {
        const rows = await store.times(
          plugin,
          keys.map(key => `set:${key}`)
        )
        return new Map(
          rows.map(({ key, next_at: nextAt, last_at: lastAt }): [string, ScheduleTimes] => [
            key.slice('set:'.length),
            { nextAt, lastAt }
          ])
        )
      },
      preview: (recurrence, count) => nextTimes(recurrence, clock.now(), count)
    })
  }

  /** From now on the times of this plugin count: those it declares, and those it has set. */
  async add(plugin: string, declared: readonly RecordedSchedule[]): Promise<void> {
    const { store } = this.parts
    this.#active.add(plugin)
    if (declared.length === 0) return
    const rows = declared.map(
      ({ name, cron, timeZone, missed }): NewSchedule => ({
        ...this.#whole(plugin, { cron, timeZone, missed, job: jobNameOf(name), payload: {} }),
        key: declaredKey(name),
        isDeclared: true
      })
    )
    await store.transaction(async tx => {
      await store.removeUndeclared(
        plugin,
        rows.map(({ key }) => key),
        tx
      )
      await store.put(rows, tx)
    })
    await this.#tell()
  }

  remove(plugin: string): void {
    this.#active.delete(plugin)
  }

  /** Enqueues what is due until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { store, clock, signals } = this.parts
    while (!signal.aborted) {
      const changed = new AbortController()
      const stopListening = signals.onSignal(changedTopic, () => {
        changed.abort()
      })
      try {
        while ((await this.#fireAll()) === batchSize) signal.throwIfAborted()
        const next = await store.nextDue([...this.#active])
        const sleepMs =
          next === undefined
            ? longestSleepMs
            : Math.min(longestSleepMs, Math.max(0, next.getTime() - clock.now().getTime()))
        await clock.sleep(sleepMs, AbortSignal.any([signal, changed.signal])).catch(() => {})
      } finally {
        stopListening()
      }
    }
  }

  /** Enqueues one batch of what is due. One that cannot be enqueued must not hold up the others: then each goes alone. */
  async #fireAll(): Promise<number> {
    try {
      return await this.#fire(batchSize)
    } catch (error) {
      this.parts.log.warn({ err: error }, 'schedules that are due could not be enqueued together')
    }
    const passed = new Set<string>()
    for (let looked = 1; looked > 0; ) looked = await this.#fire(1, passed)
    return 0
  }

  /** How many schedules it looked at; one that fails is skipped this time when `passed` is there to note it. */
  async #fire(atMost: number, passed?: Set<string>): Promise<number> {
    const { store, log } = this.parts
    let at: ScheduleRow | undefined
    try {
      return await this.#fireBatch(atMost, ([first]) => {
        at = first
      })
    } catch (error) {
      if (passed === undefined || at === undefined || !isOfTheJob(error)) throw error
      const { plugin, key, nextAt } = at
      const name = `${plugin} ${key}`
      if (passed.has(name)) throw error
      passed.add(name)
      log.error(
        { err: error, plugin, schedule: key, dueAt: nextAt },
        'a schedule could not be enqueued; its next time counts'
      )
      const next = decideFiring(
        { ...at, nextAt: nextAt ?? this.parts.clock.now() },
        this.parts.clock.now()
      ).nextAt
      await store.transaction(async tx => {
        await store.recordFired([{ plugin, key, nextAt: next, lastAt: null }], tx)
      })
      return 1
    }
  }

  async #fireBatch(atMost: number, found: (due: readonly ScheduleRow[]) => void): Promise<number> {
    const { store, jobs, clock, log } = this.parts
    return await store.transaction(async tx => {
      const now = clock.now()
      const due = await store.due([...this.#active], now, atMost, tx)
      found(due)
      // Declared by an earlier version of the plugin.
      const stale = due.filter(({ plugin, job }) => !jobs.has(plugin, job))
      for (const { plugin, key } of stale) await store.remove(plugin, key, tx)
      const fired = due
        .filter(row => !stale.includes(row))
        .map(row => ({ row, ...decideFiring({ ...row, nextAt: row.nextAt ?? now }, now) }))
      for (const { row, dueAt } of fired) {
        if (dueAt === null)
          log.info(
            { plugin: row.plugin, schedule: row.key, dueAt: row.nextAt },
            'a scheduled time was missed; the next one counts'
          )
      }
      await jobs.submit(
        fired.flatMap(({ row, dueAt }) => (dueAt === null ? [] : [submissionOf(row, dueAt)])),
        tx
      )
      await store.recordFired(
        fired.map(({ row: { plugin, key }, nextAt, dueAt }) => ({ plugin, key, nextAt, lastAt: dueAt })),
        tx
      )
      return due.length
    })
  }

  #whole(
    plugin: string,
    { cron, timeZone = defaultTimeZone, job, payload, missed = 'skip' }: JobSchedule
  ): Omit<ScheduleRow, 'key'> {
    return {
      plugin,
      cron,
      timeZone,
      job,
      payload,
      missed,
      nextAt: nextTime({ cron, timeZone }, this.parts.clock.now())
    }
  }

  async #tell(tx?: Tx): Promise<void> {
    await this.parts.signals.signal(changedTopic, '', tx)
  }
}

/** Data that does not fit, a constraint, a limit of a program: they fail the same way every time. */
const lastingClasses = new Set(['22', '23', '54', 'GW'])

/**
 * Whether what keeps a job from being enqueued is in the job, and not in the database: that one is away, out of
 * connections or of room, gave up a statement or met a deadlock, and the next look enqueues what was due.
 */
function isOfTheJob(error: unknown): boolean {
  if (isProblem(error)) return error.status < 500
  const code = errorCode(error)
  return code === undefined || lastingClasses.has(code.slice(0, 2))
}

/** The queue's library takes names of 128 characters at most, the plugin's included. */
const longestShortKey = 64
const shortKey = (key: string): string =>
  key.length <= longestShortKey ? key : createHash('sha256').update(key).digest('hex')

/** At most one waits, and runs of one schedule never overlap. */
function submissionOf({ plugin, key, job, payload }: ScheduleRow, dueAt: Date): Submission {
  return {
    plugin,
    name: job,
    key: `schedule ${key}`,
    queue: `schedule ${shortKey(key)}`,
    payload: key.startsWith('set:') ? payload : { dueAt: dueAt.toISOString() }
  }
}
