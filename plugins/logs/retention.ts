import type { Log } from 'busbar/sdk'
import type { RemovalStore } from './kept/removal-store.js'

/** Deletes what was written before then, a part at a time. */
export async function removeOld(
  before: Date,
  {
    removals,
    log,
    signal
  }: { readonly removals: RemovalStore; readonly log: Log; readonly signal: AbortSignal }
): Promise<void> {
  let parts = 1
  for (; await removals.removeOlder(before); parts++) signal.throwIfAborted()
  log.debug({ before, parts }, 'lines of containers that are too old were deleted')
}
