import { randomUUID } from 'node:crypto'
import {
  type Clock,
  type Database,
  isProblem,
  type Jobs,
  type Log,
  type Page,
  type ProjectId,
  type Rows
} from 'busbar/sdk'
import type { BackupResource, SourceKind } from '../api.js'
import { problems } from '../problems.js'
import type { RestoreStore } from '../restores/restore-store.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import type { SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { BackupRunner } from './backup-runner.js'
import type { BackupOfSource, BackupRow, BackupStore, NewBackup } from './backup-store.js'
import type { LeftRuns } from './left-runs.js'

interface BackupServiceParts {
  readonly db: Database
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly clock: Clock
  readonly log: Log
  readonly store: BackupStore
  readonly restores: RestoreStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly runner: Pick<BackupRunner, 'failWithout'>
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
    await this.#insert(kind, resource, plan, null)
  }

  /**
   * The same for a schedule, which has nobody to tell: what refuses is a backup that has failed. False where it is left out, as another
   * one or a restore is under way.
   */
  async beginDue(kind: SourceKind, resourceId: string, project: string, plan: BackupPlan): Promise<boolean> {
    const { sources, log } = this.parts
    if (!sources.isThere(kind)) return await this.#failOff(kind, resourceId, plan)
    const resource = await sources.resource(kind, resourceId, project)
    try {
      await this.#refuseBusy(kind, resource)
      await this.#insert(kind, resource, plan, resource.backupRefusal)
      return true
    } catch (error) {
      if (
        !isProblem(error) ||
        (error.code !== problems.busy.code && error.code !== problems.restoreBusy.code)
      )
        throw error
      log.info({ kind, resourceId, reason: error.message }, 'a backup is due and cannot begin now')
      return false
    }
  }

  /** Nobody is there who could make it, and nobody would hear of that otherwise. */
  async #failOff(kind: SourceKind, resourceId: string, plan: BackupPlan): Promise<boolean> {
    const { db, store, sourceStore, runner } = this.parts
    const source = await sourceStore.of(kind, resourceId)
    if (source === undefined || (await store.running(source.id))) return false
    const id = randomUUID()
    await db.transaction(async tx => {
      await store.insert(this.#rowOf(id, source.id, source.version, plan), tx)
      await runner.failWithout(id, source, problems.sourceOff({ kind }).message, tx)
    })
    return true
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

  async #insert(
    kind: SourceKind,
    resource: BackupResource,
    plan: BackupPlan,
    refusal: string | null
  ): Promise<void> {
    const { db, jobs, queues, store, restores, sourceStore, runner } = this.parts
    const id = randomUUID()
    await db.transaction(async tx => {
      const source = await sourceStore.hold(kind, resource, tx)
      if (source.deleted_at !== null) throw problems.resourceGone({ kind, id: resource.id })
      if (await store.running(source.id, tx)) throw problems.busy()
      if (await restores.running(source.id, tx)) throw problems.restoreBusy()
      await store.insert(this.#rowOf(id, source.id, resource.version, plan), tx)
      if (refusal !== null) {
        await runner.failWithout(id, source, refusal, tx)
        return
      }
      const queue = await queues.of('backup', source.id, tx)
      await jobs.enqueue('backup', { backupId: id }, { key: `backup/${id}`, queue }, tx)
    })
  }

  #rowOf(id: string, sourceId: string, version: string, plan: BackupPlan): NewBackup {
    return {
      id,
      source_id: sourceId,
      config_id: plan.configId,
      destination_id: plan.destinationId,
      started_at: this.parts.clock.now(),
      version,
      databases: plan.databases,
      quiesce: plan.quiesce
    }
  }
}
