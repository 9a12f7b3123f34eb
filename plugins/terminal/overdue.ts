import type { EndReason } from './end-reason.js'

/** How long a session goes on without anybody who is attached to it. */
export const unattendedMs = 60_000

export interface SessionTimes {
  /** Since when nobody is attached; null while somebody is. */
  readonly unattendedSince: number | null
  /** When something was typed or written last. */
  readonly lastActive: number
}

/** Why a session has to end now; null while it may go on. Times in milliseconds. */
export function overdueReason(times: SessionTimes, now: number, idleMs: number): EndReason | null {
  if (times.unattendedSince !== null && now - times.unattendedSince >= unattendedMs) return 'left'
  return now - times.lastActive >= idleMs ? 'idle' : null
}
