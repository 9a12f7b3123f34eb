import {
  type Clock,
  type Database,
  type Events,
  type Jobs,
  type Log,
  type Secrets,
  type Tx,
  withTimeLimit
} from 'busbar/sdk'
import { type CheckFacts, drillFailed } from '../api.js'
import { problems } from '../problems.js'
import type { DumpReader } from '../restores/dump-reader.js'
import { eventOf } from '../runs/backup-runner.js'
import type { BackupRow, BackupStore } from '../runs/backup-store.js'
import type { Deletions } from '../runs/deletions.js'
import { runFailure } from '../runs/run-failure.js'
import { withRunLimit } from '../runs/run-limit.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import { removedOf, type SourceRow, type SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { DrillStore } from './drill-store.js'

interface DrillParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly events: Events
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly store: DrillStore
  readonly backups: BackupStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly reader: DumpReader
  readonly deletions: Pick<Deletions, 'afterUse'>
  readonly limitMinutes: number
}

const settleMs = 120_000
const lookEveryMs = 5_000
/** A copy that ends the platform does so each time. */
const mostAttempts = 5

/** Proves backups: each is restored into a throwaway copy, which is asked. */
export class DrillService {
  constructor(private readonly parts: DrillParts) {}

  /** Throws where it is under way, or the backup is not good. */
  async begin(backup: Pick<BackupRow, 'id' | 'status'>): Promise<void> {
    if (backup.status !== 'succeeded') throw problems.notSucceeded({ status: backup.status })
    const begun = await this.parts.db.transaction(async tx => await this.#begin(backup.id, tx))
    if (!begun) throw problems.inUse({ what: 'proven' })
  }

  /** The newest backup of a schedule, unless it is proven already. */
  async beginDue(configId: string): Promise<void> {
    const newest = await this.parts.store.newest(configId)
    if (newest === undefined || newest.proof === 'proven') return
    await this.parts.db.transaction(async tx => await this.#begin(newest.id, tx))
  }

  /** The job; what a process has left that died is taken away first. It never rejects for what fails in it. */
  async run(id: string, attempt: number, signal: AbortSignal): Promise<void> {
    const { backups, sourceStore, store, clock, log, secrets, db, events } = this.parts
    const backup = await backups.open(id)
    const row = backup === undefined ? undefined : await sourceStore.find(backup.source_id)
    if (backup?.proof !== 'running' || row === undefined) return
    const since = clock.elapsed()
    const ms = (): number => Math.round(clock.elapsed() - since)
    await store.seen(id, clock.now())
    const unwanted = new AbortController()
    const stop = clock.every(lookEveryMs, async () => {
      await store.seen(id, clock.now())
      if (!(await backups.isWanted(id))) unwanted.abort(new Error(`the ${row.kind} was deleted`))
    })
    try {
      await this.#settle(row)
      if (attempt > mostAttempts) throw new Error('the platform ended each time that the drill was under way')
      const { rows, detail } = await withRunLimit(
        { clock, minutes: this.parts.limitMinutes, signal, unwanted: unwanted.signal },
        async limited => await this.#check(backup, row, limited)
      )
      if (backup.rows !== null && rows < backup.rows)
        throw new Error(`the copy has ${rows} rows, and ${backup.rows} were backed up`)
      await store.proven(id, { at: clock.now(), ms: ms(), rows, detail: secrets.clean(detail) })
    } catch (error) {
      signal.throwIfAborted()
      log.error({ err: error, backupId: id }, 'a backup could not be proven')
      const reason = secrets.clean(runFailure(error))
      await db.transaction(async tx => {
        await store.failed(id, { at: clock.now(), ms: ms(), error: reason }, tx)
        if (!(await backups.isWanted(id, tx))) return
        await events.emit(drillFailed, { ...eventOf(row), backupId: id, reason }, tx)
      })
    } finally {
      stop()
      await this.#settle(row)
      await this.parts.deletions.afterUse(id)
    }
  }

  async #check(backup: BackupRow, row: SourceRow, signal: AbortSignal): Promise<CheckFacts> {
    const { sources, reader, log } = this.parts
    const source = sources.get(row.kind)
    const say = (message: string): void => {
      log.debug({ backupId: backup.id }, message)
    }
    const of = { ...removedOf(row), version: backup.version }
    return await reader.withDump(
      backup,
      row.project_id,
      // What it is restored into is thrown away.
      { signal, say, isBeside: true },
      async dump => await source.check(of, dump, { signal, say })
    )
  }

  async #begin(id: string, tx: Tx): Promise<boolean> {
    const { store, jobs, queues, clock } = this.parts
    const sourceId = await store.begin(id, clock.now(), tx)
    if (sourceId === undefined) return false
    const queue = await queues.of('drill', sourceId, tx)
    await jobs.enqueue('drill', { backupId: id }, { key: `drill/${id}`, queue }, tx)
    return true
  }

  async #settle(row: SourceRow): Promise<void> {
    const { sources, log } = this.parts
    if (!sources.isThere(row.kind)) return
    await withTimeLimit(
      { ms: settleMs },
      async signal => await sources.get(row.kind).settle(row.resource_id, 'check', { signal })
    ).catch((error: unknown) => {
      log.error({ err: error, resourceId: row.resource_id }, 'what a drill has left could not be taken away')
    })
  }
}
