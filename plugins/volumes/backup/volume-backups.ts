import type { ApplicationControl } from 'busbar/api/applications'
import type { BackupKeeper, BackupSource } from 'busbar/api/backups'
import type { EngineDiskReader } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock, Database, OptionalHandle, Tx } from 'busbar/sdk'
import type { DiscardedVolumes } from '../discarded-volumes.js'
import type { EngineVolumeStore } from '../engine-volume-store.js'
import type { VolumeRemoval } from '../volume-removal.js'
import { applicationOf } from './volume-look.js'
import type { VolumeSource } from './volume-source.js'
import type { WorkStore } from './work-store.js'

interface VolumeBackupsParts {
  readonly db: Database
  readonly store: WorkStore
  readonly engineVolumes: EngineVolumeStore
  readonly discarded: Pick<DiscardedVolumes, 'tell'>
  readonly removal: Pick<VolumeRemoval, 'leftOf'>
  readonly runtime: ContainerRuntime
  readonly control: ApplicationControl
  readonly clock: Clock
  readonly keeper: OptionalHandle<BackupKeeper>
  readonly disk: OptionalHandle<EngineDiskReader>
}

interface MadeVolume {
  readonly id: string
  readonly name: string
  readonly mount_path: string
  readonly application_id: string
}

export interface RemovedVolume extends Omit<MadeVolume, 'mount_path'> {
  readonly delete_backups: boolean
}

const engine = 'volume'

/** What backups ask of volumes. How one is made and restored is loaded with the first of them. */
export class VolumeBackups implements BackupSource {
  #source: Promise<VolumeSource> | undefined

  constructor(private readonly parts: VolumeBackupsParts) {}

  async find(...asked: Parameters<BackupSource['find']>) {
    return await (await this.#loaded()).find(...asked)
  }
  async heir(...asked: Parameters<VolumeSource['heir']>) {
    return await (await this.#loaded()).heir(...asked)
  }
  async dump(...asked: Parameters<BackupSource['dump']>) {
    return await (await this.#loaded()).dump(...asked)
  }
  async restore(...asked: Parameters<BackupSource['restore']>): Promise<void> {
    await (await this.#loaded()).restore(...asked)
  }
  async settle(...asked: Parameters<VolumeSource['settle']>): Promise<void> {
    await (await this.#loaded()).settle(...asked)
  }
  async settleLeft(...asked: Parameters<VolumeSource['settleLeft']>): Promise<void> {
    await (await this.#loaded()).settleLeft(...asked)
  }
  async check(...asked: Parameters<BackupSource['check']>) {
    return await (await this.#loaded()).check(...asked)
  }
  async space() {
    return await (await this.#loaded()).space()
  }
  /** Its application is deployed for it again, and nobody else can do that. */
  async blueprint(): Promise<string | null> {
    return null
  }

  /** Why nobody may start, stop or deploy an application now; null where they may. */
  async refuses(applicationId: string): Promise<string | null> {
    const standing = await this.parts.store.standing(applicationId)
    return standing === undefined
      ? null
      : `a ${standing.what} of its volume ${standing.name} is under way: try again when that has ended`
  }

  /** What is kept of one of that name, as its files are, is its own again. In the transaction that inserts its row. */
  async tellMade({ id, name, mount_path, application_id: applicationId }: MadeVolume, tx: Tx): Promise<void> {
    const keeper = this.parts.keeper.get()
    const application = keeper && (await applicationOf(this.parts.db, applicationId, tx))
    if (keeper === undefined || application === undefined) return
    const { project_id: projectId, slug } = application
    const made = {
      id,
      projectId,
      name,
      slug: `${slug}-${name}`,
      engine,
      version: '',
      application: { id: applicationId, name: application.name },
      mountPath: mount_path
    }
    await keeper.made('volume', made, tx)
  }

  /** Backups of a volume go with its application, or where that is asked for. In the transaction that has deleted its row. */
  async tellRemoved(
    { id, name, application_id: applicationId, delete_backups: isAsked }: RemovedVolume,
    tx: Tx
  ): Promise<void> {
    const keeper = this.parts.keeper.get()
    const application = keeper && (await applicationOf(this.parts.db, applicationId, tx))
    if (keeper === undefined || application === undefined) return
    const { project_id: projectId, slug } = application
    const removed = { id, projectId, name, slug: `${slug}-${name}`, engine, version: '' }
    const deleteBackups = isAsked || application.is_leaving
    await keeper.removed('volume', removed, { deleteBackups, blueprint: null }, tx)
  }

  /** How many a volume has; undefined where nobody knows. */
  async count(id: string): Promise<number | undefined> {
    return (await this.parts.keeper.get()?.impact('volume', id))?.backupCount
  }

  async #loaded(): Promise<VolumeSource> {
    this.#source ??= import('./volume-source.js').then(module => new module.VolumeSource(this.parts))
    return await this.#source
  }
}
