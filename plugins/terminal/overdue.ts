import type { EndReason } from './end-reason.js'

/** How long a session goes on without anybody who is attached to it. */
export const unattendedMs = 60_000

/**
 * What is written down has the time of the machine, which may have been set back since: what is of a time to come is as old as
 * what is of long ago.
 */
export interface RecentTimes {
  readonly after: Date
  readonly until: Date
}

export const recentTimes = (now: Date, ms: number): RecentTimes => ({
  after: new Date(now.getTime() - ms),
  until: new Date(now.getTime() + ms)
})

export const isRecent = (time: Date, { after, until }: RecentTimes): boolean => time > after && time <= until

export interface SessionTimes {
  /** Since when nobody is attached; null while somebody is. */
  readonly unattendedSince: number | null
  /** When something was typed or written last. */
  readonly lastActive: number
}

/** Why a session has to end now; null while it may go on. Times by `Clock.elapsed`. */
export function overdueReason(times: SessionTimes, now: number, idleMs: number): EndReason | null {
  if (times.unattendedSince !== null && now - times.unattendedSince >= unattendedMs) return 'left'
  return now - times.lastActive >= idleMs ? 'idle' : null
}
