import type { Clock } from 'busbar/sdk'
import type { DatabaseHolds } from '../records/database-holds.js'

interface SettleTurnsParts {
  readonly holds: Pick<DatabaseHolds, 'takeLeft' | 'letGo' | 'prolong'>
  readonly clock: Clock
}

/** A process that stands still for that long has been killed. */
const holdMs = 60_000
const prolongEveryMs = 15_000
const lookEveryMs = 500

/**
 * One at a time puts a database back, of all processes: who makes backups, and the look for what was left while nobody did. Two at once
 * would each remove the container that the other has made, and take that for a server that does not serve.
 */
export class SettleTurns {
  constructor(private readonly parts: SettleTurnsParts) {}

  /** Waits for its turn. Where there is nothing to put back any more, `work` finds that. */
  async during(
    id: string,
    task: 'backup' | 'restore',
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<void>
  ): Promise<void> {
    const { holds, clock } = this.parts
    for (;;) {
      const now = clock.now()
      const hold = await holds.takeLeft(id, task, { now, until: this.#until(now) })
      if (hold === 'over') return await work(signal)
      if (hold === 'busy') {
        await clock.sleep(lookEveryMs, signal)
        continue
      }
      const stopProlonging = clock.every(prolongEveryMs, async () => {
        // One that cannot be prolonged for so long ends; what it was for goes on to its end.
        await holds.prolong(hold, this.#until(clock.now())).catch(() => {})
      })
      try {
        return await work(signal)
      } finally {
        stopProlonging()
        await holds.letGo(hold)
      }
    }
  }

  #until(now: Date): Date {
    return new Date(now.getTime() + holdMs)
  }
}
