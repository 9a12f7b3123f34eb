import type { ApplicationRegistry } from 'busbar/api/applications'
import type { BackupKeeper } from 'busbar/api/backups'
import type { PreparedImages } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { LogArchive } from 'busbar/api/logs'
import type { Bus, Database, Events, OptionalHandle, ProjectId, Resources, Tx } from 'busbar/sdk'
import { databaseDeleted } from '../api.js'
import type { AttachmentStore } from '../attachments/attachment-store.js'
import type { DatabaseBackupSource } from '../backups/backup-source.js'
import { problems } from '../problems.js'
import { portsChanged } from '../status/status-board.js'
import type { DatabaseRow } from './database-row.js'
import type { DatabaseStore } from './database-store.js'

interface DatabaseRemovalParts {
  readonly db: Database
  readonly store: DatabaseStore
  readonly resources: Resources
  readonly events: Events
  readonly bus: Bus
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly prepared: OptionalHandle<PreparedImages>
  readonly logs: OptionalHandle<LogArchive>
  readonly backups: OptionalHandle<BackupKeeper>
  readonly applications: Pick<ApplicationRegistry, 'markConfigChanged'>
  readonly attachments: Pick<AttachmentStore, 'applicationsOf'>
  readonly source: DatabaseBackupSource
}

/** What this plugin does itself when a database is removed; the rest is the kernel's, see `resources.ts`. */
export class DatabaseRemoval {
  constructor(private readonly parts: DatabaseRemovalParts) {}

  /** Out of reach from now on; the kernel takes it apart. */
  async delete(
    project: ProjectId,
    databaseId: string,
    { deleteBackups }: { readonly deleteBackups: boolean }
  ): Promise<{ status: string }> {
    const { db, store, resources, bus, applications, attachments } = this.parts
    await db.transaction(async tx => {
      if ((await store.get(project, databaseId, tx)) === undefined) throw problems.notFound({ databaseId })
      await store.update(databaseId, { delete_backups: deleteBackups }, tx)
      if (!(await resources.remove({ kind: 'database', id: databaseId, project }, tx)))
        throw problems.notFound({ databaseId })
      // Their next containers have no connection to it any more.
      for (const applicationId of await attachments.applicationsOf(databaseId, tx))
        await applications.markConfigChanged(applicationId, tx)
      await bus.signal(portsChanged, databaseId, tx)
    })
    return { status: 'deleted' }
  }

  /** The last step before the row goes. */
  async removeParts(row: DatabaseRow): Promise<void> {
    const { db, prepared, logs } = this.parts
    const databaseId = row.id
    const runtime = this.parts.runtime.get()
    if (runtime !== undefined) {
      for (const container of await runtime.list({ databaseId })) await runtime.remove(container.id)
      for (const name of await runtime.volumeNames({ databaseId })) await runtime.removeVolume(name)
    } else if (wasMade(row)) throw problems.containersOff({ plugin: 'containers' })
    await prepared.get()?.keep(databaseId, [])
    await logs.get()?.forget(databaseId)
    await db.sql('delete from $schema.attachment where database_id = ?', [databaseId])
  }

  async recordDeleted(row: DatabaseRow, tx: Tx): Promise<void> {
    const { id, project_id: projectId, name, slug, type: engine, version } = row
    await this.parts.backups
      .get()
      ?.removed(
        'database',
        { id, projectId, name, slug, engine, version },
        { deleteBackups: row.delete_backups, blueprint: this.#blueprint(row) },
        tx
      )
    await this.parts.events.emit(databaseDeleted, { databaseId: id, projectId }, tx)
  }

  /** Null where its key is gone. */
  #blueprint(row: DatabaseRow): string | null {
    try {
      return JSON.stringify(this.parts.source.blueprintOf(row))
    } catch {
      return null
    }
  }
}

/** Whether anything of it may be on an engine; what never was waits for none to be removed. */
const wasMade = ({
  container_id,
  image_reference,
  initialized_at
}: Pick<DatabaseRow, 'container_id' | 'image_reference' | 'initialized_at'>): boolean =>
  container_id !== null || image_reference !== null || initialized_at !== null
