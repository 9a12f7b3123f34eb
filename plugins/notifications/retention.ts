import type { Clock, Log } from 'busbar/sdk'
import type { NoticeStore } from './notice-store.js'

const dayMs = 86_400_000
/** Deleted at a time, each from as many inboxes as it was told to, so that nobody waits long for them. */
const batch = 1_000

interface RetentionParts {
  readonly notices: Pick<NoticeStore, 'forget'>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

/** Once a day, and at the start, deletes what is older than that; 0 days deletes nothing. */
export async function keepForDays(
  days: number,
  { notices, clock, log, signal }: RetentionParts
): Promise<void> {
  if (days === 0) return
  while (!signal.aborted) {
    const before = new Date(clock.now().getTime() - days * dayMs)
    let deleted = 0
    for (let last = batch; last === batch && !signal.aborted; deleted += last)
      last = await notices.forget(before, batch)
    if (deleted > 0) log.info({ deleted, before }, 'old notifications were deleted')
    await clock.sleep(dayMs, signal)
  }
}
