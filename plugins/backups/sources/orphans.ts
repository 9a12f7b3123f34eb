import type { Clock, Database, Log, Page, ProjectId, Rows, Secrets, Tx } from 'busbar/sdk'
import type { BackupKeeper, MadeResource, RemovedResource, SourceKind } from '../api.js'
import type { ConfigService } from '../configs/config-service.js'
import { problems } from '../problems.js'
import type { RestoreStore } from '../restores/restore-store.js'
import { blueprintPlace } from '../runs/backup-runner.js'
import type { BackupOfSource, BackupStore } from '../runs/backup-store.js'
import type { DeletionStore } from '../runs/deletion-store.js'
import type { Deletions } from '../runs/deletions.js'
import type { SourceRow, SourceStore } from './source-store.js'
import type { Sources } from './sources.js'

interface OrphanParts {
  readonly db: Database
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly backups: BackupStore
  readonly restores: RestoreStore
  readonly deletionStore: DeletionStore
  readonly deletions: Deletions
  readonly configs: ConfigService
  readonly sourceStore: SourceStore
  readonly sources: Sources
}

/** What becomes of backups when what they are of is gone. */
export class Orphans implements BackupKeeper {
  constructor(private readonly parts: OrphanParts) {}

  async list(
    project: ProjectId,
    kind: SourceKind,
    page: Page,
    { application = null }: { readonly application?: string | null } = {}
  ): Promise<Rows<BackupOfSource>> {
    return await this.parts.backups.orphaned({ project, kind, application }, page)
  }

  async find(project: ProjectId, kind: SourceKind, id: string): Promise<BackupOfSource> {
    const found = await this.parts.backups.find(project, id)
    if (found === undefined || found.deleted_at === null || found.kind !== kind)
      throw problems.notFound({ backupId: id })
    return found
  }

  async removed(
    kind: SourceKind,
    { id }: RemovedResource,
    { deleteBackups, blueprint }: { readonly deleteBackups: boolean; readonly blueprint: string | null },
    tx: Tx
  ): Promise<void> {
    const source = await this.parts.sourceStore.of(kind, id, tx)
    if (source !== undefined) await this.#bury(source, { deleteBackups, blueprint }, tx)
  }

  async made(kind: SourceKind, resource: MadeResource, tx: Tx): Promise<void> {
    const { sourceStore, backups } = this.parts
    const { projectId, application, name } = resource
    if (application === null) return
    const former = await sourceStore.formerOf(kind, { projectId, applicationId: application.id, name }, tx)
    // Of most there is nothing to be known yet.
    if (former.length === 0) return
    const source = await sourceStore.hold(kind, resource, tx)
    if (source.deleted_at === null) await backups.adopt(source.id, former, tx)
  }

  /** With an application the backups of what was in it go, whenever that was deleted. */
  async applicationRemoved(applicationId: string): Promise<void> {
    const { db, sourceStore } = this.parts
    await db.transaction(async tx => {
      for (const source of await sourceStore.ofApplication(applicationId, tx))
        await this.#bury(source, { deleteBackups: true, blueprint: null }, tx)
    })
  }

  async impact(kind: SourceKind, id: string) {
    return await this.parts.deletionStore.impact(kind, id)
  }

  async activity(kind: SourceKind, id: string): Promise<'backup' | 'restore' | null> {
    const { sourceStore, backups, restores } = this.parts
    const source = await sourceStore.of(kind, id)
    if (source === undefined) return null
    if (await restores.running(source.id)) return 'restore'
    return (await backups.running(source.id)) ? 'backup' : null
  }

  /** Finds what has gone while nobody told: its plugin was on, and backups were off. */
  async notice(signal: AbortSignal): Promise<void> {
    const { sourceStore, sources, db, log } = this.parts
    for (const source of await sourceStore.alive()) {
      signal.throwIfAborted()
      if (!sources.isThere(source.kind)) continue
      try {
        if ((await sources.look(source.kind, source.resource_id, source.project_id)) !== undefined) continue
        await db.transaction(async tx => {
          await this.#bury(source, { deleteBackups: false, blueprint: null }, tx)
        })
      } catch (error) {
        log.warn({ err: error, resourceId: source.resource_id }, 'whether it is there could not be asked')
      }
    }
    await this.#noticeHeirs(signal)
  }

  /** Of what is kept: who has its name now, or that its application is gone. */
  async #noticeHeirs(signal: AbortSignal): Promise<void> {
    const { sourceStore, sources, deletions, db, log } = this.parts
    for (const { id, kind, project_id, application_id, name } of await sourceStore.orphanedInApplications()) {
      signal.throwIfAborted()
      if (!sources.isThere(kind)) continue
      try {
        const heir = await sources.heir(kind, {
          projectId: project_id,
          applicationId: application_id,
          name
        })
        if (heir === undefined) continue
        await db.transaction(async tx => {
          if (heir === 'ended') await deletions.eraseAll(id, tx)
          else await this.made(kind, heir, tx)
        })
      } catch (error) {
        log.warn({ err: error, sourceId: id }, 'who has its name now could not be asked')
      }
    }
  }

  async #bury(
    source: SourceRow,
    { deleteBackups, blueprint }: { readonly deleteBackups: boolean; readonly blueprint: string | null },
    tx: Tx
  ): Promise<void> {
    const { sourceStore, configs, deletions, clock, secrets } = this.parts
    const sealed = blueprint === null ? null : secrets.seal(blueprint, blueprintPlace(source.id))
    await sourceStore.bury(source.id, { at: clock.now(), blueprint: sealed }, tx)
    // Behind it: who makes a schedule holds the source meanwhile.
    await configs.removeAll(source.id, tx)
    if (deleteBackups) await deletions.eraseAll(source.id, tx)
    // An application may stand still for it.
    else if (source.application_id !== null) await deletions.endRunning(source.id, tx)
  }
}
