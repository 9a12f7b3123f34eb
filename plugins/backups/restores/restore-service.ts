import { randomUUID } from 'node:crypto'
import {
  type Clock,
  type Database,
  isProblem,
  isUuid,
  type Jobs,
  type Page,
  type ProjectId,
  type Rows,
  type Secrets,
  type Tx
} from 'busbar/sdk'
import type { BackupResource, SourceKind } from '../api.js'
import { problems } from '../problems.js'
import { blueprintPlace } from '../runs/backup-runner.js'
import type { BackupOfSource, BackupStore } from '../runs/backup-store.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import { removedOf, type SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { RestoreRow, RestoreStore } from './restore-store.js'

interface RestoreServiceParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly clock: Clock
  readonly secrets: Secrets
  readonly store: RestoreStore
  readonly backups: BackupStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
}

/** What is restored, and into what. */
interface RestoreRequest {
  readonly kind: SourceKind
  readonly resourceId: string
  readonly backupId: string
  /** Whether it may be a backup of another one. */
  readonly isFromOther: boolean
}

/** What is asked for, and what is told. The work is `RestoreRunner`'s. */
export class RestoreService {
  constructor(private readonly parts: RestoreServiceParts) {}

  async list(kind: SourceKind, resourceId: string, page: Page): Promise<Rows<RestoreRow>> {
    const source = await this.parts.sourceStore.of(kind, resourceId)
    if (source === undefined) return { rows: [], total: 0 }
    return await this.parts.store.list(source.id, page)
  }

  /** Begins one, which goes on by itself. */
  async begin(
    project: ProjectId,
    { kind, resourceId, backupId, isFromOther }: RestoreRequest
  ): Promise<void> {
    const { sources, backups } = this.parts
    const backup = isUuid(backupId) ? await backups.find(project, backupId) : undefined
    if (backup === undefined || backup.kind !== kind)
      throw problems.backupUnknown({ backupId: backupId.slice(0, 40), kind })
    if (backup.resource_id !== resourceId && !isFromOther)
      throw problems.backupOfOther({ backupId, name: backup.resource_name })
    if (!isUuid(resourceId)) throw problems.resourceGone({ kind, id: resourceId.slice(0, 40) })
    const resource = await sources.resource(kind, resourceId, project)
    if (resource.engine !== backup.engine)
      throw problems.otherEngine({ from: backup.engine, to: resource.engine })
    if (backup.status !== 'succeeded') throw problems.notSucceeded({ status: backup.status })
    await this.#insert(kind, resource, backup)
  }

  /** Makes what was deleted again, under its name and with its credentials, and restores the backup into it; as the operation that creates one answers it. */
  async recreate(project: ProjectId, backupId: string): Promise<Readonly<Record<string, unknown>>> {
    const { backups, sourceStore, sources, secrets } = this.parts
    const backup = await backups.find(project, backupId)
    if (backup === undefined || backup.deleted_at === null || backup.kind !== 'database')
      throw problems.notFound({ backupId })
    if (backup.status !== 'succeeded') throw problems.notSucceeded({ status: backup.status })
    const source = sources.get(backup.kind)
    const tombstone = await sourceStore.find(backup.source_id)
    if (source.recreate === undefined || tombstone?.blueprint == null)
      throw problems.notRecreated({ engine: backup.engine })
    const blueprint = secrets.open(tombstone.blueprint, blueprintPlace(tombstone.id))
    // Made before the restore is begun: where the platform is killed in between, the name is taken and nothing is restored.
    const made = await source.recreate(removedOf(tombstone), blueprint).catch((error: unknown) => {
      throw isProblem(error) && error.code === problems.nameTaken.code
        ? problems.nameTaken({ reason: error.message })
        : error
    })
    const resource = await sources.resource(backup.kind, made.id, project)
    await this.#insert(backup.kind, resource, backup, { isNew: true })
    return made.answer
  }

  async #insert(
    kind: SourceKind,
    resource: BackupResource,
    backup: BackupOfSource,
    { isNew = false } = {}
  ): Promise<void> {
    const { db, jobs, queues, clock, store, backups, sourceStore } = this.parts
    const id = randomUUID()
    await db.transaction(async (tx: Tx) => {
      const source = await sourceStore.hold(kind, resource, tx)
      if (source.deleted_at !== null) throw problems.resourceGone({ kind, id: resource.id })
      if (await store.running(source.id, tx)) throw problems.restoreBusy()
      if (await backups.running(source.id, tx)) throw problems.busy()
      // What is asked of what is being made is asked again when it is there.
      if (!isNew && resource.restoreRefusal !== null)
        throw problems.refused({ reason: resource.restoreRefusal })
      // It is not deleted meanwhile: who deletes it looks for this row, under the same lock.
      if (!(await backups.lock(backup.id, tx))) throw problems.notFound({ backupId: backup.id })
      await store.insert({ id, source_id: source.id, backup_id: backup.id, started_at: clock.now() }, tx)
      const queue = await queues.of('restore', source.id, tx)
      await jobs.enqueue('restore', { restoreId: id }, { key: `restore/${id}`, queue }, tx)
    })
  }
}
