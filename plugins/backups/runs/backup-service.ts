import { randomUUID } from 'node:crypto'
import type { Clock, Database, Jobs, Page, ProjectId, Rows, Tx } from 'busbar/sdk'
import type { BackupResource, SourceKind } from '../api.js'
import { problems } from '../problems.js'
import type { RestoreStore } from '../restores/restore-store.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import type { SourceRow, SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { BackupOfSource, BackupRow, BackupStore, NewBackup } from './backup-store.js'
import type { LeftRuns } from './left-runs.js'

interface BackupServiceParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly clock: Clock
  readonly store: BackupStore
  readonly restores: RestoreStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly configs: { ran(configId: string, at: Date, tx: Tx): Promise<void> }
  readonly left: LeftRuns
}

/** How a backup is to be made. */
export interface BackupPlan {
  readonly configId: string | null
  readonly destinationId: string | null
  readonly databases: readonly string[]
  readonly quiesce: boolean
}

export const byHand: BackupPlan = { configId: null, destinationId: null, databases: [], quiesce: false }

/** Rows of the list of a whole project, besides the newest of each source. */
const newestOfProject = 50

/** What is asked for, and what is told. The work is `BackupRunner`'s. */
export class BackupService {
  constructor(private readonly parts: BackupServiceParts) {}

  async list(kind: SourceKind, resourceId: string, page: Page): Promise<Rows<BackupRow>> {
    const source = await this.parts.sourceStore.of(kind, resourceId)
    if (source === undefined) return { rows: [], total: 0 }
    return await this.parts.store.list(source.id, page)
  }

  async recent(project: ProjectId, page: Page): Promise<Rows<BackupOfSource>> {
    return await this.parts.store.recent(project, newestOfProject, page)
  }

  /** A backup of that resource. Throws where there is none. */
  async find(project: ProjectId, kind: SourceKind, resourceId: string, id: string): Promise<BackupOfSource> {
    const found = await this.parts.store.find(project, id)
    if (found === undefined || found.kind !== kind || found.resource_id !== resourceId)
      throw problems.notFound({ backupId: id })
    return found
  }

  /** Begins one, which goes on by itself. Rejects while one is under way, and where the source refuses. */
  async begin(kind: SourceKind, resourceId: string, project: string, plan: BackupPlan): Promise<void> {
    const resource = await this.parts.sources.resource(kind, resourceId, project)
    await this.#refuseBusy(kind, resource)
    if (resource.backupRefusal !== null) throw problems.refused({ reason: resource.backupRefusal })
    await this.#insert(kind, resource, plan)
  }

  async #refuseBusy(kind: SourceKind, { id }: BackupResource): Promise<void> {
    const { store, restores, sourceStore, left } = this.parts
    const source = await sourceStore.of(kind, id)
    if (source === undefined) return
    const problem = (await store.running(source.id))
      ? problems.busy()
      : (await restores.running(source.id))
        ? problems.restoreBusy()
        : undefined
    if (problem === undefined) return
    // It may be one that nobody works at.
    await left.takeUp(source.id)
    throw problem
  }

  async #insert(kind: SourceKind, resource: BackupResource, plan: BackupPlan): Promise<void> {
    const { db, clock, configs, store, restores, sourceStore } = this.parts
    const now = clock.now()
    await db.transaction(async tx => {
      const source = await sourceStore.hold(kind, resource, tx)
      if (source.deleted_at !== null) throw problems.resourceGone({ kind, id: resource.id })
      if (await store.running(source.id, tx)) throw problems.busy()
      if (await restores.running(source.id, tx)) throw problems.restoreBusy()
      await this.add(newBackup(source, plan, now), tx)
      if (plan.configId !== null) await configs.ran(plan.configId, now, tx)
    })
  }

  /** It begins when `tx` has committed. */
  async add(backup: NewBackup, tx: Tx): Promise<void> {
    const { jobs, queues, store } = this.parts
    await store.insert(backup, tx)
    const queue = await queues.of('backup', backup.source_id, tx)
    await jobs.enqueue('backup', { backupId: backup.id }, { key: `backup/${backup.id}`, queue }, tx)
  }
}

/** One of what a source has now. */
export const newBackup = (source: SourceRow, plan: BackupPlan, at: Date): NewBackup => ({
  id: randomUUID(),
  source_id: source.id,
  config_id: plan.configId,
  destination_id: plan.destinationId,
  started_at: at,
  version: source.version,
  databases: plan.databases,
  quiesce: plan.quiesce
})
