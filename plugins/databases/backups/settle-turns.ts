import { type Clock, withLease } from 'busbar/sdk'
import type { DatabaseHolds } from '../records/database-holds.js'

interface SettleTurnsParts {
  readonly holds: Pick<DatabaseHolds, 'leaseOfLeft'>
  readonly clock: Clock
}

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
    work: () => Promise<void>
  ): Promise<void> {
    const { holds, clock } = this.parts
    await withLease(holds.leaseOfLeft(id, task), { clock, signal }, work)
  }
}
