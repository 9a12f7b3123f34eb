import { randomBytes } from 'node:crypto'
import type { ApplicationControl } from 'busbar/api/applications'
import type {
  BackupResource,
  BackupSource,
  BackupWork,
  CheckFacts,
  Dump,
  DumpOptions,
  RemovedResource,
  SourceSpace,
  StoredDump
} from 'busbar/api/backups'
import { type ContainerRuntime, checkedTar } from 'busbar/api/containers'
import type { Clock, Database } from 'busbar/sdk'
import type { DiscardedVolumes } from '../discarded-volumes.js'
import type { EngineVolumeStore } from '../engine-volume-store.js'
import { sparePrefix } from '../volume-name.js'
import { type SeenVolume, volumeById } from './volume-look.js'
import type { WorkRow, WorkStore } from './work-store.js'

interface VolumeSourceParts {
  readonly db: Database
  readonly store: WorkStore
  readonly engineVolumes: EngineVolumeStore
  readonly discarded: Pick<DiscardedVolumes, 'tell'>
  readonly runtime: ContainerRuntime
  readonly control: ApplicationControl
  readonly clock: Clock
}

const engine = 'volume'
const format = 'tar'
const owner = 'volumes'

/** Another one each time: the one before may be on its way out. */
const newSpareName = (volumeId: string): string =>
  `${sparePrefix}${volumeId.slice(0, 8)}-${randomBytes(4).toString('hex')}`
const drillNameOf = (volumeId: string): string => `busbar-drill-${volumeId}`

/** The volumes of applications, as what backups are made of. */
export class VolumeSource implements Omit<BackupSource, 'blueprint'> {
  constructor(private readonly parts: VolumeSourceParts) {}

  async find(id: string, projectId: string): Promise<BackupResource | undefined> {
    const volume = await volumeById(this.parts.db, id)
    if (volume === undefined || volume.project_id !== projectId) return undefined
    return {
      id,
      projectId,
      name: volume.name,
      slug: `${volume.application_slug}-${volume.name}`,
      engine,
      version: '',
      application: { id: volume.application_id, name: volume.application_name },
      mountPath: volume.mount_path,
      databases: [],
      backupRefusal: volume.is_made ? null : 'the volume was never made: deploy the application first',
      restoreRefusal: null
    }
  }

  async dump(id: string, { quiesce }: DumpOptions, work: BackupWork): Promise<Dump> {
    const volume = await this.#existing(id)
    if (quiesce) await this.#stand(volume, 'backup', null, work)
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
  async restore(id: string, dump: StoredDump, work: BackupWork): Promise<void> {
    const volume = await this.#existing(id)
    const { engineVolumes, runtime, store } = this.parts
    checkFormat(dump)
    const spare = newSpareName(id)
    const mine = { projectId: volume.project_id, applicationId: volume.application_id }
    await engineVolumes.note(volume.application_id, [volume.engine_name, spare])
    await store.begin(newWork(volume, 'restore', spare))
    for (const name of [volume.engine_name, spare]) await runtime.ensureVolume(name, mine)
    const { content, check } = checkedTar(dump.content)
    await runtime.fillVolume(spare, content, work)
    work.say(`${check.files} files were unpacked beside the present ones`)
    await this.#stand(volume, 'restore', spare, work)
    work.signal.throwIfAborted()
    await store.note({ volume_id: id, what: 'restore' }, { is_exchanging: true })
    await runtime.exchangeVolumes(volume.engine_name, spare)
    await store.note({ volume_id: id, what: 'restore' }, { is_exchanging: false })
    work.say('they have taken the place of those that were there')
  }

  async settle(id: string, what: 'backup' | 'restore' | 'check'): Promise<void> {
    const { store, runtime, control } = this.parts
    if (what === 'check') return await runtime.removeVolume(drillNameOf(id))
    const row = await store.find(id, what)
    if (row === undefined) return
    const spare = row.spare_name
    if (spare !== null && row.is_exchanging) {
      await runtime.exchangeVolumes(row.engine_name, spare, { isResumed: true })
      await store.note(row, { is_exchanging: false })
    }
    if (row.has_stopped) await control.start(row.application_id)
    if (spare !== null) await this.#discard(spare)
    await store.end(id, what)
  }

  async check(of: RemovedResource, dump: StoredDump, work: BackupWork): Promise<CheckFacts> {
    const { runtime } = this.parts
    checkFormat(dump)
    const name = drillNameOf(of.id)
    await runtime.removeVolume(name)
    try {
      await runtime.ensureVolume(name, { projectId: of.projectId })
      await runtime.fillVolume(name, checkedTar(dump.content).content, work)
      const { content, check } = checkedTar(await runtime.readVolume(name, work))
      for await (const _ of content);
      return { rows: check.files, detail: `${check.files} files` }
    } finally {
      await runtime.removeVolume(name)
    }
  }

  async space(id: string): Promise<SourceSpace> {
    const volume = await volumeById(this.parts.db, id)
    return { used: volume?.size_bytes ?? null, free: null }
  }

  /** The application stands still: nobody writes to the volume from here on. Noted before, so that it is started again whatever happens. */
  async #stand(
    volume: SeenVolume,
    what: WorkRow['what'],
    spare: string | null,
    { say }: BackupWork
  ): Promise<void> {
    const { store, control } = this.parts
    const { id: volume_id, application_id: applicationId } = volume
    await store.begin(newWork(volume, what, spare))
    // From here on others are refused; who was let in before is seen here.
    const reason = await control.refusal(applicationId, owner)
    if (reason !== null) throw new Error(`the application cannot be stopped for it: ${reason}`)
    await store.note({ volume_id, what }, { has_stopped: true })
    if (await control.stop(applicationId)) say('the application is stopped meanwhile')
    else await store.note({ volume_id, what }, { has_stopped: false })
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

const newWork = (volume: SeenVolume, what: WorkRow['what'], spare: string | null): WorkRow => ({
  volume_id: volume.id,
  what,
  application_id: volume.application_id,
  engine_name: volume.engine_name,
  has_stopped: false,
  spare_name: spare,
  is_exchanging: false
})

function checkFormat({ format: found }: StoredDump): void {
  if (found !== format) throw new Error(`a backup of the form ${found} is none of a volume`)
}
