import { type Clock, type Database, type Jobs, type Log, type Tx, withTimeLimit } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { SourceStore } from '../sources/source-store.js'
import type { BackupRow, BackupStore } from './backup-store.js'
import type { DeletionStore } from './deletion-store.js'
import type { Storages } from './storages.js'

interface DeletionParts {
  readonly db: Database
  readonly jobs: Jobs
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
/** What a destination is waited for: it is asked again later, and others wait meanwhile. */
const fileMs = 30_000

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
    const { db, store, configs, retainCount } = this.parts
    const keep = configId === null ? retainCount : await configs.keepOf(configId)
    if (keep === null || keep === undefined) return
    for (const id of await store.beyond({ sourceId, configId }, keep))
      await db.transaction(async tx => {
        if ((await store.use(id, tx)) === null) await this.#mark(id, tx)
      })
  }

  async forgetFailed(sourceId: string): Promise<void> {
    await this.parts.store.forgetFailed(sourceId, keptFailures)
  }

  /** All backups of a source, whatever they are used for. */
  async eraseAll(sourceId: string, tx: Tx): Promise<void> {
    const { store, clock, jobs } = this.parts
    await store.markAll(sourceId, clock.now(), tx)
    await jobs.enqueue('sweep', {}, { key: 'sweep' }, tx)
  }

  /** The job. Rejects where the file cannot be removed now. */
  async erase(id: string, signal: AbortSignal): Promise<void> {
    const { store, backups, sourceStore, storages } = this.parts
    const backup = await backups.open(id)
    if (backup === undefined || backup.status === 'running') return
    const isMarked = await store.isMarked(id)
    if (!isMarked && !(backup.status === 'failed' && backup.has_file)) return
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
    const { store, clock, log, sourceStore } = this.parts
    const now = clock.now()
    if (orphanDays > 0) await store.markOrphaned(new Date(now.getTime() - orphanDays * 86_400_000), now)
    const away = new Set<string>()
    for (const { id, destination_id: destinationId } of await store.due(sweepAtMost)) {
      signal.throwIfAborted()
      if (destinationId !== null && away.has(destinationId)) continue
      await this.erase(id, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        // After one failure it is not waited for again today.
        if (destinationId !== null) away.add(destinationId)
        log.warn({ err: error, backupId: id }, 'a backup could not be erased, and is tried again')
      })
    }
    await sourceStore.forgetEmpty()
  }

  async #mark(id: string, tx: Tx): Promise<void> {
    const { store, clock, jobs } = this.parts
    await store.mark(id, clock.now(), tx)
    // One after another: a destination that keeps them waiting keeps nothing else waiting.
    await jobs.enqueue('erase', { backupId: id }, { key: `erase/${id}`, queue: 'erase' }, tx)
  }
}
