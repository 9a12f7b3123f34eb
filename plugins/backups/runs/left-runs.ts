import type { Clock, Database, Jobs, Tx } from 'busbar/sdk'
import type { OwnerQueues } from '../sources/owner-queues.js'

interface LeftRunsParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly clock: Clock
}

/** What is worked at shows itself much more often. */
const silentMs = 15 * 60_000

const silent = {
  backup: "$schema.backup where status = 'running' and coalesce(seen_at, started_at) < :before",
  restore: "$schema.restore where status = 'running' and coalesce(seen_at, started_at) < :before",
  drill: "$schema.backup where proof = 'running' and coalesce(proof_seen_at, started_at) < :before"
} as const
const tasks = ['backup', 'restore', 'drill'] as const

/**
 * Runs that are said to be under way and whose job is gone: somebody has emptied the queue, or it has had all of its attempts. Nothing
 * else would begin for what they are runs of. Under their keys they are there once, so those that only wait are not there twice.
 */
export class LeftRuns {
  constructor(private readonly parts: LeftRunsParts) {}

  /** Of one source, or of all. */
  async takeUp(sourceId: string | null = null): Promise<void> {
    const { db, clock } = this.parts
    const before = new Date(clock.now().getTime() - silentMs)
    for (const task of tasks) {
      const runs = await db.sql<{ id: string; source_id: string }>(
        `select id, source_id from ${silent[task]} and (cast(:sourceId as uuid) is null or source_id = :sourceId)
        order by started_at, id`,
        { before, sourceId }
      )
      for (const run of runs)
        await db.transaction(async tx => {
          await this.#enqueue(task, run, tx)
        })
    }
  }

  async #enqueue(
    task: (typeof tasks)[number],
    { id, source_id: sourceId }: { readonly id: string; readonly source_id: string },
    tx: Tx
  ): Promise<void> {
    const { jobs, queues } = this.parts
    const queue = await queues.of(task, sourceId, tx)
    const payload = task === 'restore' ? { restoreId: id } : { backupId: id }
    await jobs.enqueue(task, payload, { key: `${task}/${id}`, queue }, tx)
  }
}
