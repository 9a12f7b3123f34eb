import { type Clock, keepForDays, type Log, runRepeatedly } from 'busbar/sdk'
import type { RemovalStore } from './read/removal-store.js'
import type { Settings } from './settings.js'

const batch = 5_000
/** Rows may come by the thousand in a second. */
const lookMs = 30_000

interface RetentionParts {
  readonly removals: RemovalStore
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Log
}

/** Deletes what is too old, and what is too much; each for one process of an installation. */
export class Retention {
  constructor(private readonly parts: RetentionParts) {}

  /** Once a day, until the signal aborts. */
  async keepDays(signal: AbortSignal): Promise<void> {
    const { removals, settings, clock, log } = this.parts
    await keepForDays({
      days: settings.retention_days,
      forget: async (before, atMost) => await removals.forget(before, atMost),
      batch,
      what: 'old requests',
      clock,
      log,
      signal
    })
  }

  /** Every half minute, until the signal aborts. */
  async keepRows(signal: AbortSignal): Promise<void> {
    const { removals, settings, clock, log } = this.parts
    const removeBeyond = async (): Promise<void> => {
      for (let last = batch; last === batch && !signal.aborted; )
        last = await removals.forgetBeyond(settings.max_rows, batch)
    }
    await runRepeatedly(removeBeyond, {
      everyMs: lookMs,
      clock,
      signal,
      onError: error => {
        log.warn({ err: error }, 'requests that are too many could not be deleted; trying again')
      }
    })
  }
}
