import { type Clock, leaseMs, prolongedLease } from 'busbar/sdk'
import type { DatabaseStatus } from '../api.js'
import { problems } from '../problems.js'
import type { DatabaseHolds } from '../records/database-holds.js'
import { type DatabaseRow, doing } from '../records/database-row.js'
import type { DatabaseStore } from '../records/database-store.js'
import type { StatusBoard } from '../status/status-board.js'

interface ControlHoldParts {
  readonly store: Pick<DatabaseStore, 'find'>
  readonly holds: DatabaseHolds
  readonly board: Pick<StatusBoard, 'released'>
  readonly clock: Clock
}

/** What a start, a stop or a restart has led to. */
export interface Controlled {
  readonly status: DatabaseStatus
  readonly reason: string | null
}

/** While the container of a database is started or stopped, nothing else is begun with it. */
export class ControlHold {
  constructor(private readonly parts: ControlHoldParts) {}

  /**
   * 409 where something else is at work. What it comes to is written when it ends; its status is shown as it was until then. `isStart`:
   * whatever comes of it, the server may have run, and its volume may hold what somebody has written.
   */
  async during(
    id: string,
    { isStart }: { readonly isStart: boolean },
    work: (row: DatabaseRow) => Promise<Controlled>
  ): Promise<void> {
    const { store, holds, board, clock } = this.parts
    const hold = await holds.take(id, this.#until())
    if (hold === undefined) {
      const row = await store.find(id)
      throw row === undefined ? problems.notFound({ databaseId: id }) : problems.busy({ what: doing(row) })
    }
    const { row } = hold
    const ref = { id, hold: hold.id }
    const stopProlonging = prolongedLease({ prolong: async until => await holds.prolong(ref, until) }, clock)
    let seen: Controlled = { status: row.status, reason: row.status_detail }
    try {
      seen = await work(row)
    } finally {
      stopProlonging()
      const { status, reason } = seen
      const isReleased = await holds.release(ref, {
        status,
        status_detail: reason,
        ...(isStart && { initialized_at: row.initialized_at ?? clock.now() })
      })
      if (isReleased) await board.released(row, status, reason)
    }
  }

  /** What a killed process has left: its container says what the status is. */
  async releaseLeft(): Promise<void> {
    const { store, holds, board, clock } = this.parts
    const now = clock.now()
    for (const { id, hold } of await holds.left(now)) {
      const row = await store.find(id)
      if (row === undefined) continue
      const { status, status_detail: reason } = row
      // It may have been started.
      const changes = { status, status_detail: reason, initialized_at: row.initialized_at ?? now }
      if (await holds.release({ id, hold }, changes)) await board.released(row, status, reason)
    }
  }

  #until(): Date {
    return new Date(this.parts.clock.now().getTime() + leaseMs)
  }
}
