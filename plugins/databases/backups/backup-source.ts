import { randomUUID } from 'node:crypto'
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
import { type EngineDiskReader, roomOn } from 'busbar/api/builds'
import {
  type Clock,
  type Database,
  isUuid,
  type OptionalHandle,
  Problem,
  type ProjectId,
  withLease
} from 'busbar/sdk'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseHolds } from '../records/database-holds.js'
import { type DatabaseRow, doing } from '../records/database-row.js'
import type { DatabaseService } from '../records/database-service.js'
import type { DatabaseStore } from '../records/database-store.js'
import { newRow } from '../records/new-row.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import { volumeOf } from '../records/slug.js'
import { fileFormats } from '../servers/file-formats.js'
import type { BackupRunners } from './backup-runners.js'

interface BackupSourceParts {
  readonly store: DatabaseStore
  readonly databases: DatabaseService
  readonly engines: Pick<EngineChoice, 'of'>
  readonly sealed: SealedCredentials
  readonly db: Database
  readonly clock: Clock
  readonly disk: OptionalHandle<EngineDiskReader>
  readonly holds: Pick<DatabaseHolds, 'leaseOfLeft'>
  /** Its code is loaded when something is dumped or restored. */
  readonly runners: () => Promise<BackupRunners>
}

/** What is needed to make a database again under its name. */
type Blueprint = Pick<
  DatabaseRow,
  | 'name'
  | 'slug'
  | 'type'
  | 'version'
  | 'image'
  | 'image_reference'
  | 'container_port'
  | 'data_dir'
  | 'backup_mode'
  | 'backup_command'
  | 'restore_command'
  | 'cpu_limit'
  | 'memory_limit'
> & { readonly credentials: Readonly<Record<string, string>> }

/** Of an operation of the plugin `backups`, which declares it. */
const nameTaken = (slug: string): Problem =>
  new Problem(409, 'E_DATABASE_TAKEN', `there is a database ${slug} again: restore into that one`)

const lookEveryMs = 500

/** Databases, as they are backed up and restored. */
export class DatabaseBackupSource implements BackupSource {
  constructor(private readonly parts: BackupSourceParts) {}

  async find(id: string, projectId: string): Promise<BackupResource | undefined> {
    const row = isUuid(id) ? await this.parts.store.find(id) : undefined
    if (row === undefined || row.project_id !== projectId) return undefined
    const busy = row.task === null ? null : `the database is ${doing(row)} now: try again later`
    const isFiles = row.type === 'other' && row.backup_mode === 'volume_snapshot'
    const isIdle = row.status !== 'running' && !isFiles
    return {
      id,
      projectId,
      name: row.name,
      slug: row.slug,
      engine: row.type,
      version: row.version,
      application: null,
      mountPath: null,
      databases: [],
      refusalPasses: busy !== null,
      backupRefusal: busy ?? (isIdle ? `the database is ${row.status}: start it` : null),
      restoreRefusal: busy
    }
  }

  async choiceRefusal(id: string): Promise<string | null> {
    const { store, engines, sealed } = this.parts
    const row = await store.find(id)
    if (row === undefined) return null
    const { dump } = await engines.of(row.type)
    if (dump === null) return 'what is backed up are files, or what a command of yours writes'
    return dump.databases(sealed.forEngine(row)) === null ? `${row.type} has no databases with names` : null
  }

  async dump(id: string, options: DumpOptions, work: BackupWork): Promise<Dump> {
    return await (await this.parts.runners()).dumps.dump(id, options, work)
  }

  async restore(id: string, dump: StoredDump, work: RestoreWork): Promise<void> {
    await (await this.parts.runners()).restores.restore(id, dump, work)
  }

  /**
   * A server reads a dump to its end; of an archive of files, nobody reads what is behind its own end. For a dump of some of its databases
   * the present server is stopped.
   */
  restoresBeside({ format, databases }: Pick<StoredDump, 'format' | 'databases'>): boolean {
    const isOfFiles = Object.values<string>(fileFormats).includes(format)
    return !isOfFiles && databases.length === 0
  }

  async check(of: RemovedResource, dump: StoredDump, work: BackupWork): Promise<CheckFacts> {
    return await (await this.parts.runners()).drills.check(of, dump, work)
  }

  async settle(id: string, what: 'backup' | 'restore' | 'check', work: SettleWork): Promise<void> {
    const { holds, clock } = this.parts
    const { dumps, restores, drills } = await this.parts.runners()
    if (what === 'check') await drills.settle(id)
    // One at a time, of all processes: two would each remove the container that the other has made, and take that for a server that does not serve.
    else
      await withLease(holds.leaseOfLeft(id, what), { clock, signal: work.signal }, async () => {
        if (what === 'backup') await dumps.settle(id, work.signal)
        else await restores.settle(id, work)
      })
  }

  async space(): Promise<SourceSpace> {
    return { free: await roomOn(this.parts.disk) }
  }

  async blueprint(id: string): Promise<string | null> {
    const row = await this.parts.store.find(id)
    return row === undefined ? null : JSON.stringify(this.blueprintOf(row))
  }

  blueprintOf(row: DatabaseRow): Blueprint {
    return {
      name: row.name,
      slug: row.slug,
      type: row.type,
      version: row.version,
      image: row.image,
      image_reference: row.image_reference,
      container_port: row.container_port,
      data_dir: row.data_dir,
      backup_mode: row.backup_mode,
      backup_command: row.backup_command,
      restore_command: row.restore_command,
      cpu_limit: row.cpu_limit,
      memory_limit: row.memory_limit,
      credentials: this.parts.sealed.open(row)
    }
  }

  async recreate(
    of: RemovedResource,
    text: string
  ): Promise<{ readonly id: string; readonly answer: Readonly<Record<string, unknown>> }> {
    const { store, databases, sealed, db, clock } = this.parts
    const { credentials, ...kept } = JSON.parse(text) as Blueprint
    const id = randomUUID()
    const now = clock.now()
    const row: DatabaseRow = {
      ...kept,
      ...newRow(now),
      id,
      project_id: of.projectId,
      task: 'provision',
      credentials: sealed.seal(id, credentials),
      volume: volumeOf(kept.slug)
    }
    await db.transaction(async tx => {
      if (await store.hasSlug(kept.slug, tx)) throw nameTaken(kept.slug)
      await databases.insert(row, tx)
    })
    return { id, answer: { ...(await databases.get(of.projectId as ProjectId, id)) } }
  }

  async ready(id: string, { signal }: Pick<BackupWork, 'signal'>): Promise<void> {
    for (;;) {
      const row = await this.parts.store.find(id)
      if (row === undefined) throw problems.notFound({ databaseId: id })
      // One that is stopped, or has failed, is restored as well; what was never made is not.
      if (row.task !== 'provision') {
        if (row.initialized_at !== null) return
        throw new Error(`the database could not be made: ${row.status_detail ?? row.status}`)
      }
      await this.parts.clock.sleep(lookEveryMs, signal)
    }
  }
}
