import { randomUUID } from 'node:crypto'
import { type Clock, type Database, type Jobs, type Log, type Tx, withTimeLimit } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import type { SourceStore } from '../sources/source-store.js'
import type { BackupRow, BackupStore } from './backup-store.js'
import type { DeletionStore } from './deletion-store.js'
import { isAway } from './moved-bucket.js'
import type { Storages } from './storages.js'

interface DeletionParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly clock: Clock
  readonly log: Log
  readonly store: DeletionStore
  readonly backups: BackupStore
  readonly sourceStore: SourceStore
  readonly storages: Storages
  readonly configs: { keepOf(configId: string): Promise<number | null | undefined> }
  /** Of what was made by hand. */
  readonly retainCount: number
}

const keptFailures = 50
const sweepAtMost = 1_000
/** Less than the job has. */
const sweepMs = 50 * 60_000
/** Of what may be one, the ends. */
const firstId = '00000000-0000-0000-0000-000000000000'
const lastId = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
/** What a destination is waited for: it is asked again later, and others wait meanwhile. */
const fileMs = 30_000

interface Sweep {
  /** By the clock. */
  readonly until: number
  /** Places that were waited for in vain. */
  readonly away: Set<string>
  readonly signal: AbortSignal
}

/** How backups go: marked at once, erased by a job that is tried again. */
export class Deletions {
  constructor(private readonly parts: DeletionParts) {}

  /** Throws while it is used. */
  async begin(id: string): Promise<void> {
    const { db, store } = this.parts
    await db.transaction(async tx => {
      const use = await store.use(id, tx)
      if (use !== null) throw problems.inUse({ what: use })
      await this.#mark(id, tx)
    })
  }

  /** What a schedule, or the installation, keeps; the rest goes. What is used stays until the next time. */
  async retain({ source_id: sourceId, config_id: configId }: BackupRow): Promise<void> {
    const { db, store, clock, configs, retainCount } = this.parts
    const keep = configId === null ? retainCount : await configs.keepOf(configId)
    if (keep === null || keep === undefined) return
    for (const id of await store.beyond({ sourceId, configId }, keep))
      await db.transaction(async tx => {
        if ((await store.use(id, tx)) !== null) return
        const marked = await store.markBeyond(id, clock.now(), tx)
        if (marked !== undefined) await this.#enqueue({ id, source_id: marked }, tx)
      })
  }

  async forgetFailed(sourceId: string, tx?: Tx): Promise<void> {
    await this.parts.store.forgetFailed(sourceId, keptFailures, tx)
  }

  /** All backups of a source; the files of those that are used go when they are not any more. */
  async eraseAll(sourceId: string, tx: Tx): Promise<void> {
    const { store, clock, jobs } = this.parts
    await store.markAll(sourceId, clock.now(), tx)
    await jobs.enqueue('sweep', {}, { key: 'sweep' }, tx)
  }

  /** What is being made of a source: it ends within seconds, and is erased then. */
  async endRunning(sourceId: string, tx: Tx): Promise<void> {
    const { store, clock } = this.parts
    await store.markRunning(sourceId, clock.now(), tx)
  }

  /** The job. Rejects where the file cannot be removed now. */
  async erase(id: string, signal: AbortSignal): Promise<void> {
    const { store, backups, sourceStore, storages } = this.parts
    const backup = await backups.open(id)
    if (backup === undefined || backup.status === 'running') return
    const isMarked = await store.isMarked(id)
    if (!isMarked && !(backup.status === 'failed' && backup.has_file)) return
    // Nothing begins with what is marked: what uses it now is the last that does.
    const use = await store.use(id)
    if (use !== null) throw new Error(`the backup is being ${use}: its file goes afterwards`)
    const source = await sourceStore.find(backup.source_id)
    if (backup.key !== null && backup.has_file && source !== undefined) {
      const { storage } = await storages.open(source.project_id, backup)
      const { key } = backup
      await withTimeLimit(
        { ms: fileMs, signal },
        async limited => await storage.remove(key, { signal: limited })
      )
    }
    if (isMarked) await store.remove(id)
    else await backups.fileGone(id)
  }

  /** Once a day: what could not be erased before, and orphans that have had their time. */
  async sweep(orphanDays: number, signal: AbortSignal): Promise<void> {
    const { db, store, clock, sourceStore } = this.parts
    const now = clock.now()
    if (orphanDays > 0)
      await db.transaction(async tx => {
        await store.markOrphaned(new Date(now.getTime() - orphanDays * 86_400_000), now, tx)
      })
    await this.#eraseDue(signal)
    await sourceStore.forgetEmpty()
  }

  /**
   * Each once, and of places that are away one each: who waits for one of those does not keep others from theirs. Each time it
   * begins elsewhere, as places that are away may be so many that the time is up before the end.
   */
  async #eraseDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.parts
    const sweep = { until: clock.elapsed() + sweepMs, away: new Set<string>(), signal }
    const begin = randomUUID()
    await this.#eraseBetween(begin, lastId, sweep)
    await this.#eraseBetween(firstId, begin, sweep)
  }

  async #eraseBetween(first: string, last: string, { until, away, signal }: Sweep): Promise<void> {
    const { store, clock, log } = this.parts
    for (let after = first; ; ) {
      const due = await store.due({ after, last, away: [...away], atMost: sweepAtMost })
      const end = due.at(-1)
      if (end === undefined) return
      after = end.id
      for (const { id, place } of due) {
        signal.throwIfAborted()
        if (clock.elapsed() > until) return
        if (away.has(place)) continue
        await this.erase(id, signal).catch((error: unknown) => {
          signal.throwIfAborted()
          // After one failure it is not waited for again today.
          if (isAway(place, error)) away.add(place)
          log.warn({ err: error, backupId: id }, 'a backup could not be erased, and is tried again')
        })
      }
    }
  }

  /** What was marked while it was used goes when that is over. */
  async afterUse(id: string): Promise<void> {
    const { db, store, backups, log } = this.parts
    try {
      const backup = (await store.isMarked(id)) ? await backups.open(id) : undefined
      if (backup !== undefined) await db.transaction(async tx => await this.#enqueue(backup, tx))
    } catch (error) {
      log.warn({ err: error, backupId: id }, 'a backup that was used is not erased yet')
    }
  }

  async #mark(id: string, tx: Tx): Promise<void> {
    const { store, clock } = this.parts
    const sourceId = await store.mark(id, clock.now(), tx)
    if (sourceId !== undefined) await this.#enqueue({ id, source_id: sourceId }, tx)
  }

  async #enqueue({ id, source_id: sourceId }: Pick<BackupRow, 'id' | 'source_id'>, tx: Tx): Promise<void> {
    const { jobs, queues } = this.parts
    // One after another of one owner: a destination that keeps them waiting keeps nobody else's waiting.
    const queue = await queues.of('erase', sourceId, tx)
    await jobs.enqueue('erase', { backupId: id }, { key: `erase/${id}`, queue }, tx)
  }
}
