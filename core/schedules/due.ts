import type { MissedRuns, Recurrence } from 'busbar/sdk'
import { nextTime } from '../declarations/recurrence.js'

/** How late a time may be noticed and still count as met: a look every half minute, and a slow machine. */
const toleranceMs = 60_000

interface DueSchedule extends Recurrence {
  readonly nextAt: Date
  readonly missed: MissedRuns
}

interface Firing {
  /** The time to run for; null when it was missed and is left out. */
  readonly dueAt: Date | null
  readonly nextAt: Date | null
}

/** What a schedule whose time has come, or has passed, is to do now. However many times have passed, it runs once at most. */
export function decideFiring(schedule: DueSchedule, now: Date): Firing {
  const isLate = now.getTime() - schedule.nextAt.getTime() > toleranceMs
  return {
    dueAt: isLate && schedule.missed === 'skip' ? null : schedule.nextAt,
    nextAt: nextTime(schedule, now)
  }
}
