import { randomUUID } from 'node:crypto'
import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime, Mounted } from 'busbar/api/containers'
import type { ContainerParts, MountPaths } from 'busbar/api/deployments'
import {
  bounded,
  type Clock,
  type Database,
  type Log,
  type Page,
  type ProjectId,
  type Resources,
  type Rows,
  type Tx
} from 'busbar/sdk'
import type { VolumeBackups } from './backup/volume-backups.js'
import type { DiscardedVolumes } from './discarded-volumes.js'
import type { EngineVolumeStore } from './engine-volume-store.js'
import { problems } from './problems.js'
import type { CreateBody, DeletedAnswer, VolumeAnswer } from './schemas.js'
import { engineNameOf, volumeNameOf } from './volume-name.js'
import type { VolumeSizes } from './volume-sizes.js'
import type { VolumeRow, VolumeStore } from './volume-store.js'

interface VolumeServiceParts {
  readonly db: Database
  readonly store: VolumeStore
  readonly engineVolumes: EngineVolumeStore
  readonly discarded: Pick<DiscardedVolumes, 'tell'>
  readonly backups: Pick<VolumeBackups, 'tellMade' | 'count'>
  readonly sizes: Pick<VolumeSizes, 'refresh'>
  readonly runtime: ContainerRuntime
  readonly resources: Resources
  readonly applications: ApplicationRegistry
  readonly mountPaths: MountPaths
  readonly clock: Clock
  readonly log: Log
}

/** With a volume that is deleted. */
interface WhatGoes {
  readonly deletesData: boolean
  readonly deletesBackups: boolean
}

/** Of one application. */
const mostVolumes = 50
const lookMs = 5_000

export class VolumeService {
  constructor(private readonly parts: VolumeServiceParts) {}

  async list(project: ProjectId, applicationId: string, page: Page): Promise<Rows<VolumeAnswer>> {
    const { store, sizes } = this.parts
    if (!(await store.hasApplication(project, applicationId)))
      throw problems.applicationGone({ applicationId })
    const before = await store.list(applicationId, page)
    if (before.rows.length === 0) return { rows: [], total: before.total }
    await sizes.refresh()
    const { rows, total } = await store.list(applicationId, page)
    return { rows: rows.map(answer), total }
  }

  async create(project: ProjectId, applicationId: string, body: CreateBody): Promise<VolumeAnswer> {
    const { db, store, engineVolumes, backups, applications, mountPaths, clock } = this.parts
    const name = volumeNameOf(body.name)
    if (name === undefined) throw problems.badName({ name: body.name.slice(0, 60) })
    const row = {
      id: randomUUID(),
      name,
      mount_path: body.mount_path,
      engine_name: engineNameOf(applicationId, name),
      created_at: clock.now()
    }
    const wasMade = await db.transaction(async tx => {
      // Its lock is that of all changes of what the application has mounted.
      await mountPaths.claim(applicationId, { kind: 'volume', path: row.mount_path }, tx)
      if (!(await store.hasApplication(project, applicationId, tx)))
        throw problems.applicationGone({ applicationId })
      const names = await store.names(applicationId, tx)
      const same = names.find(other => other.name === name)
      if (same?.isLeaving === false) throw problems.nameTaken({ name })
      const made = await engineVolumes.find(row.engine_name, tx)
      if (same !== undefined || made?.isDiscarded === true) throw problems.nameLeaving({ name })
      if (names.length >= mostVolumes) throw problems.tooMany({ limit: mostVolumes })
      await store.insert({ ...row, application_id: applicationId }, tx)
      await backups.tellMade({ ...row, application_id: applicationId }, tx)
      await applications.markConfigChanged(applicationId, tx)
      return made !== undefined
    })
    return answer({ ...row, size_bytes: wasMade ? null : 0 })
  }

  async delete(
    project: ProjectId,
    applicationId: string,
    volumeId: string,
    { deletesData, deletesBackups }: WhatGoes
  ): Promise<DeletedAnswer> {
    const { db, store, engineVolumes, discarded, backups, resources, applications, clock } = this.parts
    const backupCount = await backups.count(volumeId)
    const row = await db.transaction(async tx => {
      const found = await store.find(applicationId, volumeId, tx)
      if (found === undefined || !(await resources.remove({ kind: 'volume', id: volumeId, project }, tx)))
        throw problems.notFound({ volumeId })
      if (deletesBackups) await store.giveUpBackups(volumeId, tx)
      if (deletesData) {
        await engineVolumes.discardOf(applicationId, found.engine_name, clock.now(), tx)
        await discarded.tell(found.engine_name, tx)
      }
      await applications.markConfigChanged(applicationId, tx)
      return found
    })
    const warnings = [await this.#warningOf(row, deletesData), backupsWarning(backupCount, deletesBackups)]
    const warning = warnings.filter(one => one !== undefined).join('. ')
    return { status: 'deleted', ...(warning !== '' && { warning }) }
  }

  /** Made on the engine before they are answered. */
  async partsFor({
    id: applicationId,
    projectId
  }: {
    readonly id: string
    readonly projectId: string
  }): Promise<ContainerParts> {
    const { store, engineVolumes, runtime } = this.parts
    const rows = await store.mounted(applicationId)
    if (rows.length === 0) return { volumes: [] }
    await engineVolumes.note(
      applicationId,
      rows.map(row => row.engine_name)
    )
    for (const { engine_name: name } of rows) await runtime.ensureVolume(name, { projectId, applicationId })
    return { volumes: rows.map(({ engine_name: volume, mount_path: path }) => ({ volume, path })) }
  }

  async mountsOf(applicationId: string, tx: Tx): Promise<readonly Mounted[]> {
    const paths = await this.parts.store.pathsOf(applicationId, tx)
    return paths.map(path => ({ kind: 'volume', path }))
  }

  async #warningOf({ name, engine_name }: VolumeRow, deletesData: boolean): Promise<string | undefined> {
    const { runtime, log } = this.parts
    const files = deletesData ? 'its files are removed then' : 'its files stay'
    try {
      const users = await bounded(async () => await runtime.volumeUsers(engine_name), {
        ms: lookMs,
        what: 'the engine'
      })
      return users.length === 0
        ? undefined
        : `a container of the application still has the volume ${name}, until the next deploy or reload; ${files}`
    } catch (error) {
      log.info({ err: error, volume: engine_name }, 'whether a container has a deleted volume is not known')
      return `the container engine does not say whether a container still has the volume ${name}; one that has keeps it until the next deploy or reload, and ${files}`
    }
  }
}

const answer = ({ id, name, mount_path, size_bytes, created_at }: VolumeRow): VolumeAnswer => ({
  id,
  name,
  mount_path,
  ...(size_bytes !== null && { size_bytes }),
  created_at
})

/** What becomes of those that there are, undefined where their number is not known: backups are off. */
function backupsWarning(count: number | undefined, isErased: boolean): string | undefined {
  if (count === undefined)
    return isErased ? 'backups are off: those of the volume are kept as orphaned ones' : undefined
  if (count === 0) return undefined
  const those = count === 1 ? 'its backup is' : `its ${count} backups are`
  return isErased
    ? `${those} erased`
    : `${those} kept as ${count === 1 ? 'an orphaned one' : 'orphaned ones'}, which the next volume of this name in the application has again`
}
