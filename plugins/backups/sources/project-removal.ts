import { type Database, type Log, withTimeLimit } from 'busbar/sdk'
import type { ConfigService } from '../configs/config-service.js'
import type { BackupStore } from '../runs/backup-store.js'
import type { DeletionStore } from '../runs/deletion-store.js'
import { isAway, thisMachine } from '../runs/moved-bucket.js'
import type { Storages } from '../runs/storages.js'

interface ProjectRemovalParts {
  readonly db: Database
  readonly log: Log
  readonly configs: ConfigService
  readonly backups: BackupStore
  readonly store: DeletionStore
  readonly storages: Storages
}

const fileMs = 20_000

/** With a project all of its backups go, files too. */
export class ProjectRemoval {
  constructor(private readonly parts: ProjectRemovalParts) {}

  /**
   * A destination is the project's own, and may be gone, or have other keys since: what cannot be removed there is named in the
   * log and left, as the project would never go otherwise. So it is with the bucket of the platform, which may be off, or another one.
   * After one failure a place is not waited for again.
   */
  async teardown(projectId: string, signal: AbortSignal): Promise<void> {
    const { db, store, configs } = this.parts
    await configs.unscheduleProject(projectId)
    const away = new Set<string>()
    for (const { id, place } of await store.ofProject(projectId)) {
      signal.throwIfAborted()
      await this.#removeFile(projectId, id, away.has(place)).catch((error: unknown) => {
        signal.throwIfAborted()
        if (place === thisMachine) throw error
        if (isAway(place, error)) away.add(place)
        this.parts.log.warn({ err: error, backupId: id, place }, 'a file of a removed project is left')
      })
    }
    await db.transaction(async tx => {
      await store.removeProject(projectId, tx)
    })
  }

  async #removeFile(projectId: string, id: string, isAway: boolean): Promise<void> {
    const { backups, storages } = this.parts
    const backup = await backups.open(id)
    const key = backup?.key
    if (backup === undefined || key == null) return
    if (isAway) throw new Error(`${key} is at a destination that does not answer`)
    const { storage } = await storages.open(projectId, backup)
    await withTimeLimit({ ms: fileMs }, async limited => await storage.remove(key, { signal: limited }))
    await backups.fileGone(id)
  }
}
