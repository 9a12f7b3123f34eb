import { randomUUID } from 'node:crypto'
import type { Database, Lease } from 'busbar/sdk'
import type { DatabaseStatus } from '../api.js'
import type { DatabaseRow } from './database-row.js'

/** A database that nobody else works on while its container is started or stopped. */
interface Hold {
  readonly id: string
  readonly row: DatabaseRow
}

/** Of a database, and which one it is. */
interface HoldRef {
  readonly id: string
  readonly hold: string
}

/**
 * What starts, stops and restarts hold, as `task` is held by work that takes longer. They belong to a request, which no job goes on
 * with: a hold counts until a time that its process moves on, so that one whose process was killed is over by itself.
 */
export class DatabaseHolds {
  constructor(private readonly db: Database) {}

  /** Undefined where something else is at work, or it is gone. */
  async take(id: string, until: Date): Promise<Hold | undefined> {
    const hold = randomUUID()
    const rows = await this.db
      .table<DatabaseRow>('database')
      .where({ id })
      .whereNull('task')
      .whereNull('deleting_at')
      .update({ task: 'control', hold, held_until: until } as object)
      .returning('*')
    const [row] = rows as DatabaseRow[]
    return row === undefined ? undefined : { id: hold, row }
  }

  /** Of a backup or a restore that is put back. */
  leaseOfLeft(id: string, task: 'backup' | 'restore'): Lease {
    const hold = randomUUID()
    return {
      take: async ({ now, until }) => {
        const rows = await this.db.sql(
          `update $schema.database set hold = :hold, held_until = :until
          where id = :id and task = :task and coalesce(held_until < :now, true) returning id`,
          { id, task, hold, until, now }
        )
        if (rows.length > 0) return 'taken'
        const [row] = await this.db.sql('select 1 from $schema.database where id = ? and task = ?', [
          id,
          task
        ])
        return row === undefined ? 'over' : 'busy'
      },
      prolong: async until => await this.prolong({ id, hold }, until),
      release: async () => {
        await this.db.table('database').where({ id, hold }).update({ hold: null, held_until: null })
      }
    }
  }

  async prolong({ id, hold }: HoldRef, until: Date): Promise<void> {
    await this.db.table('database').where({ id, hold }).update({ held_until: until })
  }

  /** False where it was over already. */
  async release(
    { id, hold }: HoldRef,
    changes: Partial<Pick<DatabaseRow, 'initialized_at'>> & {
      readonly status: DatabaseStatus
      readonly status_detail: string | null
    }
  ): Promise<boolean> {
    const rows = await this.db
      .table('database')
      .where({ id, hold, task: 'control' })
      .update({ ...changes, task: null, hold: null, held_until: null })
      .returning('id')
    return rows.length > 0
  }

  /** Those whose process has ended. */
  async left(now: Date): Promise<readonly HoldRef[]> {
    return await this.db.sql(
      `select id, hold from $schema.database
      where task = 'control' and held_until < ? and deleting_at is null order by id`,
      [now]
    )
  }
}
