import { type Clock, keepForDays, type Log, runRepeatedly } from 'busbar/sdk'
import type { RemovalStore } from './read/removal-store.js'
import { surplusOf } from './read/row-shares.js'
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
  /** How many were there when so many had ever come; undefined before they were counted. */
  #kept: { readonly rows: number; readonly position: number } | undefined

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
    const { clock, log } = this.parts
    await runRepeatedly(async () => await this.#removeSurplus(signal), {
      everyMs: lookMs,
      clock,
      signal,
      onError: error => {
        log.warn({ err: error }, 'requests that are too many could not be deleted; trying again')
      }
    })
  }

  /** To count looks at all rows: it is done when there may be too many since it was done last. */
  async #removeSurplus(signal: AbortSignal): Promise<void> {
    const { removals, settings } = this.parts
    const position = await removals.lastPosition()
    if (this.#kept !== undefined && this.#kept.rows + position - this.#kept.position <= settings.max_rows)
      return
    const holders = await removals.holders()
    const rows = holders.reduce((sum, holder) => sum + holder.rows, 0)
    this.#kept = { rows, position }
    if (rows <= settings.max_rows) return
    // Of many, some more, so that the next flood does not have all of them counted again at once.
    const most = settings.max_rows - Math.floor(settings.max_rows / 100_000) * 1000
    let removed = 0
    for (const { applicationId, rows: surplus } of surplusOf(holders, most))
      for (let left = surplus; left > 0 && !signal.aborted; ) {
        const gone = await removals.forgetOldest(applicationId, Math.min(left, batch))
        removed += gone
        left = gone === 0 ? 0 : left - gone
      }
    this.#kept = { rows: rows - removed, position }
  }
}
