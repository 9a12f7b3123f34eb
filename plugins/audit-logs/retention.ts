import type { AuditLog, Clock, Log } from 'busbar/sdk'

const dayMs = 86_400_000
/** Rows deleted at a time, so that writers of records do not wait long. */
const batch = 5_000

/** Once a day, and at the start, deletes the records that are older than that; 0 days keeps all of them. */
export async function keepForDays(
  days: number,
  { audit, clock, log, signal }: { audit: AuditLog; clock: Clock; log: Log; signal: AbortSignal }
): Promise<void> {
  if (days === 0) return
  while (!signal.aborted) {
    const before = new Date(clock.now().getTime() - days * dayMs)
    let deleted = 0
    for (let last = batch; last === batch && !signal.aborted; deleted += last)
      last = await audit.forget(before, batch)
    if (deleted > 0) log.info({ deleted, before }, 'old audit records were deleted')
    await clock.sleep(dayMs, signal)
  }
}
