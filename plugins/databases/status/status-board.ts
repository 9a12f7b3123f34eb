import type { Bus, Clock, Database, Events, Tx } from 'busbar/sdk'
import { type DatabaseStatus, databaseFailed } from '../api.js'
import { problems } from '../problems.js'
import { type DatabaseRow, type DatabaseTask, doing } from '../records/database-row.js'
import type { DatabaseChanges, DatabaseStore, TaskBegin } from '../records/database-store.js'

/** A container that is started anew may crash for ever. */
const tellAgainMs = 3_600_000

/** "Look at this database's container again": sent to whichever process follows the engine. */
export const lookAgain = 'look-again'
/** "Look which ports are to be open": sent to whichever process has them open. */
export const portsChanged = 'ports-changed'

interface StatusBoardParts {
  readonly store: DatabaseStore
  readonly db: Database
  readonly events: Events
  readonly bus: Bus
  readonly clock: Clock
}

type FollowedRow = Exclude<Awaited<ReturnType<DatabaseStore['followed']>>, undefined>

/** Writes the status of databases, and publishes every change on their channels. */
export class StatusBoard {
  constructor(private readonly parts: StatusBoardParts) {}

  /** Begins work on a database, in `tx`; 409 where something else is at work, or it is in none of these states. */
  async begin(id: string, begin: TaskBegin, changes: DatabaseChanges, tx: Tx): Promise<DatabaseRow> {
    const { store, db } = this.parts
    const row = await store.begin(id, begin, changes, tx)
    if (row === undefined) {
      const found = await store.find(id, tx)
      if (found === undefined) throw problems.notFound({ databaseId: id })
      if (found.task === null) throw problems.notRunning({ status: found.status })
      throw problems.busy({ what: doing(found) })
    }
    db.afterCommit(tx, () => {
      this.announce(id, begin.status)
    })
    return row
  }

  /** Ends it; nothing happens where something else is at work by now. */
  async end(
    id: string,
    task: DatabaseTask,
    status: DatabaseStatus,
    changes: DatabaseChanges = {},
    tx?: Tx
  ): Promise<boolean> {
    const { store, bus, db } = this.parts
    if (!(await store.end(id, task, { ...changes, status }, tx))) return false
    if (tx === undefined) this.announce(id, status)
    else
      db.afterCommit(tx, () => {
        this.announce(id, status)
      })
    // What its container did meanwhile was not followed.
    await bus.signal(lookAgain, id, tx)
    await bus.signal(portsChanged, id, tx)
    return true
  }

  /** Its container was started or stopped, and nothing holds it any more. `was`: the row before that. */
  async released(was: DatabaseRow, status: DatabaseStatus, reason: string | null): Promise<void> {
    if (status !== was.status) {
      this.announce(was.id, status)
      if (status === 'failed') await this.#tell(was, reason ?? 'its container has ended')
    }
    // What its container did meanwhile was not followed.
    await this.parts.bus.signal(lookAgain, was.id)
  }

  /** What was seen of its container; false where something else has changed meanwhile. */
  async follow(row: FollowedRow, status: DatabaseStatus, reason: string | null): Promise<boolean> {
    const { store, clock } = this.parts
    if (!(await store.follow(row, status, reason, clock.now()))) return false
    this.announce(row.id, status)
    if (status === 'failed') await this.#tell(row, reason ?? 'its container has ended')
    return true
  }

  announce(databaseId: string, status: DatabaseStatus): void {
    this.parts.bus.publish(`database-status:${databaseId}`, 'status', { database_id: databaseId, status })
  }

  async #tell(
    { id, project_id: projectId, name }: Pick<DatabaseRow, 'id' | 'project_id' | 'name'>,
    reason: string
  ): Promise<void> {
    const { store, db, events, clock } = this.parts
    const now = clock.now()
    await db.transaction(async tx => {
      if (await store.noteFailure(id, now, new Date(now.getTime() - tellAgainMs), tx))
        await events.emit(
          databaseFailed,
          { databaseId: id, projectId, database: name, kind: 'ended', reason },
          tx
        )
    })
  }
}
