import type { MissedRuns, ScheduleContext } from 'busbar/sdk'
import type { ScheduleRecord } from '../declarations/records.js'
import type { RecordedJob } from '../jobs/recorded-job.js'

/** A plugin's declaration with `self` bound. */
export interface RecordedSchedule extends Omit<ScheduleRecord, 'run'> {
  readonly missed: MissedRuns
  run(context: ScheduleContext): Promise<void>
}

/** The job that does the work of a declared schedule; no plugin can declare one of such a name. */
export const jobNameOf = (schedule: string): string => `schedule.${schedule}`

export const declaredKey = (schedule: string): string => `declared:${schedule}`

/** The durable job of a declared schedule. */
export const jobOf = ({ name, lane, attempts, timeoutMs, run }: RecordedSchedule): RecordedJob => ({
  name: jobNameOf(name),
  lane,
  attempts,
  timeoutMs,
  run: async (payload, context) => {
    const { dueAt } = payload as { readonly dueAt: string }
    await run({ ...context, dueAt: new Date(dueAt) })
  }
})
