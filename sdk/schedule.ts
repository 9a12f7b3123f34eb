import type { JobContext } from './job.js'
import type { Tx } from './tx.js'

/** When recurring work is due. */
export interface Recurrence {
  /**
   * A cron expression of five fields (minute, hour, day of month, month, day of week) or of six, with
   * seconds first. Names (`MON`, `JAN`), steps, `L` and `@daily` are understood. With both a day of the month
   * and a day of the week, either one makes it due, as cron has it.
   */
  readonly cron: string
  /** The IANA name of the time zone that the fields are read in; `UTC` unless given. */
  readonly timeZone?: string
}

/**
 * What becomes of times that passed while the platform or the plugin was down: `run-once` makes up for all
 * of them with one run, `skip` waits for the next time.
 */
export type MissedRuns = 'run-once' | 'skip'

/** Recurring work that a plugin declares. It runs in one process, as a durable job of the short lane. */
export interface ScheduleSpec<Self> extends Recurrence {
  /** Unique within the plugin: `sweep`. */
  readonly name: string
  /** `skip` unless given. */
  readonly missed?: MissedRuns
  readonly lane?: 'short' | 'long'
  /** How often one run is tried in all; 1 unless given: the next time comes anyway. */
  readonly attempts?: number
  /** After this the signal aborts and the attempt has failed. Default 5 minutes. */
  readonly timeoutMs?: number
  /** Never runs twice at a time; a run that takes longer than the pause between two times leaves out those it meets. */
  readonly run: (context: ScheduleContext, self: Self) => Promise<void>
}

export interface ScheduleContext extends JobContext {
  /** The time that the run was due at, which may have passed a while ago. */
  readonly dueAt: Date
}

export type ScheduleDeclarer<Self> = (spec: ScheduleSpec<Self>) => void

/** A schedule that a plugin makes while it runs: one for each backup plan that a user sets up, for example. */
export interface JobSchedule extends Recurrence {
  /** A job that the plugin declares; it is enqueued with `payload` at each time, one at most waiting. */
  readonly job: string
  readonly payload: object
  readonly missed?: MissedRuns
}

export interface ScheduleTimes {
  /** Null when no further time matches: the 30th of February. */
  readonly nextAt: Date | null
  /** When it was last due and its job was enqueued; null before the first time. */
  readonly lastAt: Date | null
}

/**
 * Schedules of this plugin, kept in PostgreSQL. Each time is enqueued exactly once, whichever process looks,
 * and only while the plugin runs.
 */
export interface Schedules {
  /**
   * Makes the schedule `key`, or replaces it. The same expression keeps its next time. Rejects with 400
   * E_SCHEDULE_CRON or E_SCHEDULE_TIME_ZONE, which say what is wrong, for the user who typed it.
   */
  set(key: string, schedule: JobSchedule, tx?: Tx): Promise<ScheduleTimes>
  /** Does nothing when there is none. What has been enqueued runs. */
  remove(key: string, tx?: Tx): Promise<void>
  /** By key. A key without a schedule is absent. */
  times(keys: readonly string[]): Promise<ReadonlyMap<string, ScheduleTimes>>
  /** The next `count` times, to show to who is typing the expression. Throws as `set` rejects. */
  preview(recurrence: Recurrence, count: number): readonly Date[]
}
