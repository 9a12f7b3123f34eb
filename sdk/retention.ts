import type { Clock, Log } from './kernel.js'

const dayMs = 86_400_000

/** What is kept for so many days, and how the rest is deleted. */
export interface Retention {
  /** 0: all of it is kept. */
  readonly days: number
  /** Deletes what is older, `atMost` so many; how many they were. */
  readonly forget: (before: Date, atMost: number) => Promise<number>
  /** Deleted at a time, so that those who write meanwhile do not wait long. */
  readonly batch: number
  /** For the log: `old notifications`. */
  readonly what: string
  readonly clock: Clock
  readonly log: Pick<Log, 'info'>
  /** Ends it, with a rejection where it sleeps. */
  readonly signal: AbortSignal
}

/** Once a day, and at the start, deletes what is older than that. For a singleton, so that one process of many does it. */
export async function keepForDays({
  days,
  forget,
  batch,
  what,
  clock,
  log,
  signal
}: Retention): Promise<void> {
  if (days === 0) return
  while (!signal.aborted) {
    const before = new Date(clock.now().getTime() - days * dayMs)
    let deleted = 0
    for (let last = batch; last === batch && !signal.aborted; deleted += last)
      last = await forget(before, batch)
    if (deleted > 0) log.info({ deleted, before }, `${what} were deleted`)
    await clock.sleep(dayMs, signal)
  }
}
