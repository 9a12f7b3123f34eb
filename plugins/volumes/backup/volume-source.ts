import { randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { ApplicationControl } from 'busbar/api/applications'
import type {
  BackupResource,
  BackupSource,
  BackupWork,
  CheckFacts,
  Dump,
  DumpOptions,
  RemovedResource,
  RestoreWork,
  SettleWork,
  SourceSpace,
  StoredDump
} from 'busbar/api/backups'
import { type EngineDiskReader, roomOn, whileThereIsRoom } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import { type Clock, type Database, isProblem, type OptionalHandle, withLease } from 'busbar/sdk'
import { checkedTar } from 'busbar/sdk/tar'
import type { DiscardedVolumes } from '../discarded-volumes.js'
import type { EngineVolumeStore } from '../engine-volume-store.js'
import { sparePrefix } from '../volume-name.js'
import type { VolumeRemoval } from '../volume-removal.js'
import { applicationOf, hasApplication, type SeenVolume, volumeById, volumeByName } from './volume-look.js'
import type { WorkRow, WorkStore } from './work-store.js'

interface VolumeSourceParts {
  readonly db: Database
  readonly store: WorkStore
  readonly engineVolumes: EngineVolumeStore
  readonly discarded: Pick<DiscardedVolumes, 'tell'>
  readonly removal: Pick<VolumeRemoval, 'leftOf'>
  readonly runtime: ContainerRuntime
  readonly control: ApplicationControl
  readonly clock: Clock
  readonly disk: OptionalHandle<EngineDiskReader>
}

const engine = 'volume'
const format = 'tar'
const owner = 'volumes'

/** Another one each time: the one before may be on its way out. */
const newSpareName = (volumeId: string): string =>
  `${sparePrefix}${volumeId.slice(0, 8)}-${randomBytes(4).toString('hex')}`
const drillNameOf = (volumeId: string): string => `busbar-drill-${volumeId}`

const resourceOf = (volume: SeenVolume): BackupResource => ({
  id: volume.id,
  projectId: volume.project_id,
  name: volume.name,
  slug: `${volume.application_slug}-${volume.name}`,
  engine,
  version: '',
  application: { id: volume.application_id, name: volume.application_name },
  mountPath: volume.mount_path,
  databases: [],
  backupRefusal: volume.is_made ? null : 'the volume was never made: deploy the application first',
  restoreRefusal: null
})

/** The volumes of applications, as what backups are made of. */
export class VolumeSource implements Omit<BackupSource, 'blueprint'> {
  constructor(private readonly parts: VolumeSourceParts) {}

  async find(id: string, projectId: string): Promise<BackupResource | undefined> {
    const volume = await volumeById(this.parts.db, id)
    return volume?.project_id === projectId ? resourceOf(volume) : undefined
  }

  async heir({ applicationId, name }: Parameters<NonNullable<BackupSource['heir']>>[0]) {
    const { db } = this.parts
    const application = await applicationOf(db, applicationId)
    if (application === undefined || application.is_leaving) return 'ended'
    const volume = await volumeByName(db, applicationId, name)
    return volume && resourceOf(volume)
  }

  async dump(id: string, { quiesce }: DumpOptions, work: BackupWork): Promise<Dump> {
    const volume = await this.#existing(id)
    await this.#settleLeft(id, work)
    if (quiesce) await this.#stand(await this.parts.store.begin(newWork(volume, 'backup', null)), work)
    const tar = await this.parts.runtime.readVolume(volume.engine_name, work)
    const { content, check } = checkedTar(tar)
    return {
      format,
      content,
      end: async () => {
        if (!check.isWhole) throw new Error('the archive of the volume is not whole')
        return { rows: check.files }
      }
    }
  }

  /** Unpacked beside what is there, and exchanged with it when it is whole. */
  async restore(id: string, dump: StoredDump, work: RestoreWork): Promise<void> {
    const volume = await this.#existing(id)
    const { engineVolumes, runtime, store } = this.parts
    checkFormat(dump)
    await this.#settleLeft(id, work)
    const spare = newSpareName(id)
    const mine = { projectId: volume.project_id, applicationId: volume.application_id }
    await engineVolumes.note(volume.application_id, [volume.engine_name, spare])
    await store.noteRestore(id, work.id)
    const row = await store.begin(newWork(volume, 'restore', spare))
    for (const name of [volume.engine_name, spare]) await runtime.ensureVolume(name, mine)
    const { content, check } = checkedTar(dump.content)
    await this.#fill(spare, content, work)
    work.say(`${check.files} files were unpacked beside the present ones`)
    await this.#stand(row, work)
    work.signal.throwIfAborted()
    // What is there may be another volume's by now, of the same name.
    await this.#existing(id)
    if (!(await store.noteExchange(row, true))) throw new Error('the volume was put back meanwhile')
    await runtime.exchangeVolumes(volume.engine_name, spare)
    await this.#noteExchanged(row, true, work.restored)
    work.say('they have taken the place of those that were there')
  }

  async settle(id: string, what: 'backup' | 'restore' | 'check', work: SettleWork): Promise<void> {
    if (what === 'check') return await this.parts.runtime.removeVolume(drillNameOf(id))
    if (what === 'backup') await this.#endRead(id)
    const left = await this.parts.store.find(id, what)
    if (left !== undefined) await this.#putBackInTurn(left, work)
    if (what === 'restore') await this.#tellOutcome(id, work)
  }

  /** Of this work alone, whoever has begun another since. */
  async settleLeft(left: WorkRow, signal: AbortSignal): Promise<void> {
    if (left.what === 'backup') await this.#endRead(left.volume_id)
    await this.#putBackInTurn(left, { signal })
  }

  /** One whose process was killed has left what it has read the volume by. */
  async #endRead(id: string): Promise<void> {
    const volume = await volumeById(this.parts.db, id)
    if (volume !== undefined) await this.parts.runtime.endVolumeCalls(volume.engine_name)
  }

  /** One at a time, of all processes: who makes backups, and the look for what was left while nobody did. */
  async #putBackInTurn(left: WorkRow, work: SettleWork): Promise<void> {
    const { store, clock } = this.parts
    await withLease(store.leaseOf(left), { clock, signal: work.signal }, async () => {
      // As it is by now.
      const row = await store.find(left.volume_id, left.what)
      if (row?.id === left.id) await this.#putBack(row, work)
    })
  }

  async #putBack(row: WorkRow, { id: restoreId, restored }: SettleWork): Promise<void> {
    const { store, control } = this.parts
    const spare = row.spare_name
    if (spare !== null && row.is_exchanging) {
      const isDone = await this.#finishExchange(row.engine_name, spare)
      await this.#noteExchanged(row, isDone, restored)
    }
    if (spare !== null) await this.#discard(spare)
    // What it has made since the application was taken apart, nobody else knows of.
    if (!(await hasApplication(this.parts.db, row.application_id)))
      await this.parts.removal.leftOf(row.application_id)
    // Before the application starts, and writes to what was there before.
    if (row.what === 'restore' && restoreId === undefined) await store.noteOutcome(row.volume_id, 'undone')
    if (!(await store.endsStop(row))) return
    await control.start(row.application_id)
    await store.end(row)
  }

  async check(of: RemovedResource, dump: StoredDump, work: BackupWork): Promise<CheckFacts> {
    const { runtime } = this.parts
    checkFormat(dump)
    const name = drillNameOf(of.id)
    await runtime.removeVolume(name)
    try {
      await runtime.ensureVolume(name, { projectId: of.projectId })
      await this.#fill(name, checkedTar(dump.content).content, work)
      const { content, check } = checkedTar(await runtime.readVolume(name, work))
      for await (const _ of content);
      return { rows: check.files, detail: `${check.files} files` }
    } finally {
      await runtime.removeVolume(name)
    }
  }

  async space(): Promise<SourceSpace> {
    return { free: await roomOn(this.parts.disk) }
  }

  /** What an earlier one could not put back is, before anything is begun: the engine was away then, or the plugin off. */
  async #settleLeft(id: string, { signal }: Pick<BackupWork, 'signal'>): Promise<void> {
    for (const what of ['restore', 'backup'] as const) await this.settle(id, what, { signal })
  }

  /** The application stands still: nobody writes to the volume from here on. Noted before, so that it is started again whatever happens. */
  async #stand(row: WorkRow, { say }: BackupWork): Promise<void> {
    const { store, control } = this.parts
    const { application_id: applicationId } = row
    // Its row is there, so others are refused; who was let in before is seen here.
    const reason = await control.refusal(applicationId, owner)
    if (reason !== null) throw new Error(`the application cannot be stopped for it: ${reason}`)
    const { isShared } = await store.noteStop(row)
    if (await control.stop(applicationId)) say('the application is stopped meanwhile')
    else if (isShared) say('the application is stopped already, for another volume of it')
    else await store.noteIdle(row)
  }

  async #fill(name: string, content: Readable, { signal }: BackupWork): Promise<void> {
    await whileThereIsRoom(this.parts, signal, async bounds => {
      await this.parts.runtime.fillVolume(name, content, { signal: bounds })
    })
  }

  /** False of volumes that are gone, with the application perhaps: nothing is left to finish. */
  async #finishExchange(name: string, spare: string): Promise<boolean> {
    try {
      await this.parts.runtime.exchangeVolumes(name, spare, { isResumed: true })
      return true
    } catch (error) {
      if (isProblem(error) && error.code === 'E_VOLUME_MISSING') return false
      throw error
    }
  }

  /** Before the application starts: what it writes from then on is not replaced by the same restore once more. */
  async #noteExchanged(row: WorkRow, isDone: boolean, restored: SettleWork['restored']): Promise<void> {
    const { db, store } = this.parts
    await db.transaction(async tx => {
      await store.noteExchange(row, false, tx)
      if (!isDone) return
      if (restored === undefined) return await store.noteOutcome(row.volume_id, 'restored', tx)
      await store.noteRestore(row.volume_id, null, tx)
      await restored(tx)
    })
  }

  /** What was put back while nobody made backups is over, whoever asks for it now. */
  async #tellOutcome(id: string, { id: restoreId, restored, undone }: SettleWork): Promise<void> {
    const { db, store } = this.parts
    const outcome = restoreId === undefined ? null : await store.outcomeOf(id, restoreId)
    if (outcome === 'restored') await db.transaction(async tx => await restored?.(tx))
    else if (outcome === 'undone') undone?.()
  }

  /** Its files go when nothing has them any more. */
  async #discard(name: string): Promise<void> {
    const { db, engineVolumes, discarded, clock } = this.parts
    await db.transaction(async tx => {
      await engineVolumes.discard(name, clock.now(), tx)
      await discarded.tell(name, tx)
    })
  }

  async #existing(id: string): Promise<SeenVolume> {
    const volume = await volumeById(this.parts.db, id)
    if (volume === undefined) throw new Error('the volume does not exist any more')
    return volume
  }
}

const newWork = (
  volume: SeenVolume,
  what: WorkRow['what'],
  spare: string | null
): Parameters<WorkStore['begin']>[0] => ({
  volume_id: volume.id,
  what,
  application_id: volume.application_id,
  engine_name: volume.engine_name,
  spare_name: spare
})

function checkFormat({ format: found }: StoredDump): void {
  if (found !== format) throw new Error(`a backup of the form ${found} is none of a volume`)
}
