import { randomUUID } from 'node:crypto'
import type {
  BackupWork,
  CheckFacts,
  Dump,
  DumpOptions,
  RemovedResource,
  RestoreWork,
  SettleWork,
  StoredDump
} from 'busbar/api/backups'
import { type EngineDiskReader, whileThereIsRoom } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock, Database, Log, OptionalHandle } from 'busbar/sdk'
import type { DumpChoice } from '../api.js'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseStore } from '../records/database-store.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import { checkVolumeOf, isCheckVolume, nextVolumeOf } from '../records/slug.js'
import { filesFormat } from '../servers/file-formats.js'
import { FileServers } from '../servers/file-servers.js'
import type { ImageSource } from '../servers/image-source.js'
import { isPassing, type Provisioner } from '../servers/provisioner.js'
import { type ServerContainer, stopGraceSeconds } from '../servers/server-container.js'
import { ended, notThere, type SideServer, SideServers } from '../servers/side-servers.js'
import type { StatusBoard } from '../status/status-board.js'
import type { GivenUpVolumes } from './given-up-volumes.js'

interface BackupRunnerParts {
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly engines: EngineChoice
  readonly images: ImageSource
  readonly servers: ServerContainer
  readonly sealed: SealedCredentials
  readonly provisioner: Provisioner
  readonly givenUp: GivenUpVolumes
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly disk: OptionalHandle<EngineDiskReader>
}

const againMs = 2000
const partOf = (): string => randomUUID().slice(0, 8)

/** Dumps databases, and brings dumps back: into a volume beside the present one, which takes its place when it is proven. */
export class BackupRunner {
  constructor(private readonly parts: BackupRunnerParts) {}

  async dump(id: string, { databases }: DumpOptions, { signal, say }: BackupWork): Promise<Dump> {
    const { board, db, servers } = this.parts
    const { runtime, side, files } = this.#tools()
    await this.#assertReadable(id)
    const row = await db.transaction(
      async tx =>
        await board.begin(
          id,
          { task: 'backup', status: 'backing_up', from: ['running', 'stopped'], detail: 'a backup is made' },
          {},
          tx
        )
    )
    const serving: SideServer = { containerId: row.container_id ?? '', row }
    const { engine } = await servers.engineOf(row)
    if (engine.dump === null) return await files.dump(serving, { say, signal })
    const choice = choiceOf(databases)
    if (!(await isRunning(runtime, serving.containerId)))
      throw problems.notRunning({ status: row.status_before ?? 'stopped' })
    if (choice.kind === 'only') await side.assertThere(serving, choice.names, signal)
    const program = await side.dump(serving, choice, signal)
    return {
      format: engine.dump.format,
      content: program.output,
      end: async () => {
        await ended(program, 'the dump', row, servers)
        return { rows: null }
      }
    }
  }

  async restore(id: string, dump: StoredDump, work: RestoreWork): Promise<void> {
    const { signal, say, restored } = work
    const { board, db, servers, images, store } = this.parts
    const { side, files } = this.#tools()
    await this.#assertReadable(id)
    const row = await db.transaction(
      async tx =>
        await board.begin(
          id,
          {
            task: 'restore',
            status: 'creating',
            from: ['running', 'stopped', 'failed'],
            detail: 'a backup is restored'
          },
          { restore_id: work.id, restore_outcome: null },
          tx
        )
    )
    const { engine } = await servers.engineOf(row)
    assertFormat(engine.dump?.format ?? filesFormat(row), dump.format)
    const image = await images.again(row, { say, signal })
    const volume = nextVolumeOf(row.slug, partOf())
    const wish = { role: 'next', imageName: image.name, volume, isEmpty: true } as const
    // A server that begins takes room of those beside it, before anything is restored into it.
    await whileThereIsRoom(this.parts, signal, async bounds => {
      if (engine.dump === null) await files.restore(row, wish, dump.content, { say, signal: bounds })
      else await this.#restoreBeside(row, wish, dump, { say, signal: bounds })
    })
    await side.close(row, 'next')
    signal.throwIfAborted()
    say('putting it in the place of the present one')
    // What was there stays until the new one serves: `settleRestore` goes back to it.
    await store.update(id, {
      volume,
      former_volume: row.volume,
      container_id: null,
      initialized_at: row.initialized_at ?? this.parts.clock.now()
    })
    const switched = await store.find(id)
    if (switched === undefined) return
    try {
      await this.#serve(switched, { say, signal })
    } catch (error) {
      // One that is cut off may serve all the same: `settleRestore` looks.
      signal.throwIfAborted()
      await this.#goBack(id, row.volume)
      throw error
    }
    await this.#keepRestored(id, restored)
  }

  /** Into a server of its own, with what is not restored of the present one. */
  async #restoreBeside(
    row: DatabaseRow,
    wish: Parameters<SideServers['open']>[1],
    dump: StoredDump,
    { signal, say }: BackupWork
  ): Promise<void> {
    const { runtime, side } = this.#tools()
    const next = await side.open(row, wish, signal)
    if (dump.databases.length > 0) {
      say('copying what is not restored beside it: nothing is written to the database meanwhile')
      await this.#stopServing(runtime, row)
      const source = await side.open(
        row,
        { role: 'source', imageName: wish.imageName, volume: row.volume, isEmpty: false },
        signal
      )
      await side.copy(source, next, { kind: 'except', names: dump.databases }, signal)
      await side.close(row, 'source')
    }
    say('restoring into a server beside the present one')
    await this.#feed(side, next, dump, signal)
    await side.claim(next, signal)
    const counted = await side.count(next, signal)
    say(`it has ${counted.size} databases with ${sumOf(counted)} rows`)
  }

  /** Before anything is begun: without its credentials its server could neither be asked nor be put back. */
  async #assertReadable(id: string): Promise<void> {
    const { store, sealed } = this.parts
    const row = await store.find(id)
    if (row !== undefined) sealed.open(row)
  }

  /** Rows that it takes are in no other volume: an engine that is away for a moment is no reason to go back. */
  async #serve(row: DatabaseRow, { signal, say }: BackupWork): Promise<void> {
    const { provisioner, clock, store } = this.parts
    for (;;)
      try {
        const present = await store.find(row.id)
        await provisioner.provision(present ?? row, signal)
        return
      } catch (error) {
        signal.throwIfAborted()
        if (!isPassing(error)) throw error
        say(provisioner.reasonOf(row, error))
        await clock.sleep(againMs, signal)
      }
  }

  /** Nothing leads back from here: the record of the restore says so in the same transaction, and it is not done again. */
  async #keepRestored(id: string, restored: SettleWork['restored']): Promise<void> {
    const { db, store } = this.parts
    await db.transaction(async tx => {
      const told = restored === undefined ? ({ restore_outcome: 'restored' } as const) : { restore_id: null }
      await store.update(id, { former_volume: null, ...told }, tx)
      await restored?.(tx)
    })
  }

  async #goBack(id: string, volume: string): Promise<void> {
    await this.parts.store.update(id, { volume, former_volume: null, container_id: null })
  }

  /** Into a server that is thrown away, whatever comes of it. */
  async check(of: RemovedResource, dump: StoredDump, { signal, say }: BackupWork): Promise<CheckFacts> {
    const { engines, images, sealed, store, clock } = this.parts
    const { runtime, side, files } = this.#tools()
    const present = await store.find(of.id)
    const kind = engines.kindOf(of.engine)
    const engine = await engines.of(of.engine)
    const credentials =
      kind.defaults === null
        ? present === undefined
          ? {}
          : sealed.open(present)
        : engine.newCredentials(
            { user: 'busbar_check' },
            {
              name: of.name,
              slug: of.slug,
              password: () => `${randomUUID()}${randomUUID()}`.replace(/-/g, '')
            }
          )
    const volume = checkVolumeOf(of.slug, partOf())
    const now = clock.now()
    const row: DatabaseRow = {
      ...(present ?? missingRow(of, now)),
      version: dump.version,
      image: kind.defaults === null ? (present?.image ?? '') : kind.image(dump.version),
      image_reference: present?.version === dump.version ? present.image_reference : null,
      container_port: present?.container_port ?? kind.defaults?.port ?? 0,
      credentials: sealed.seal(of.id, credentials),
      initialized_at: null,
      // It is to disturb nobody.
      cpu_limit: 0,
      memory_limit: present?.memory_limit ?? 0
    }
    try {
      if (engine.dump === null && present === undefined) throw new Error(notStarted)
      assertFormat(engine.dump?.format ?? filesFormat(row), dump.format)
      const image = await images.again(row, { say, signal })
      const wish = { role: 'check', imageName: image.name, volume, isEmpty: engine.dump !== null } as const
      return await whileThereIsRoom(this.parts, signal, async bounds => {
        if (engine.dump === null) {
          await files.restore(row, wish, dump.content, { say, signal: bounds })
          // What is in the files, nobody here can ask: that a server of the same image starts with them is the proof.
          await side.open(row, wish, bounds)
          return {
            rows: 0,
            detail: `${dump.bytes} bytes of files, with which its server starts and takes connections`
          }
        }
        const server = await side.open(row, wish, bounds)
        await this.#feed(side, server, dump, bounds)
        const counted = await side.count(server, bounds)
        const missing = dump.databases.find(name => !counted.has(name))
        if (missing !== undefined) throw notThere(missing)
        return { rows: sumOf(counted), detail: `${counted.size} databases` }
      })
    } finally {
      await this.settleCheck(of.id).catch((error: unknown) => {
        this.parts.log.warn({ err: error, databaseId: of.id }, 'what a drill has made could not be removed')
      })
      await runtime.removeVolume(volume).catch(() => {})
    }
  }

  async settleBackup(id: string, signal: AbortSignal): Promise<void> {
    const { store, board, provisioner } = this.parts
    const row = await store.find(id)
    if (row?.task !== 'backup') return
    const { runtime, side } = this.#tools()
    await side.closeAll(row)
    await runtime.endVolumeCalls(row.volume)
    const before = row.status_before ?? 'running'
    const failure = await this.#failureOf(row, signal, async () => {
      if (before === 'running') await provisioner.provision(row, signal)
      else await this.#stopServing(runtime, row)
    })
    await board.end(
      id,
      'backup',
      failure === null ? before : 'failed',
      failure === null ? {} : { status_detail: failure }
    )
  }

  async settleRestore(id: string, work: SettleWork): Promise<void> {
    const { store } = this.parts
    const found = await store.find(id)
    if (found?.task === 'restore') await this.#putBackRestore(found, work)
    await this.#tellOutcome(await store.find(id), work)
  }

  /** What was put back while nobody made backups is over, whoever asks for it now. */
  async #tellOutcome(row: DatabaseRow | undefined, work: SettleWork): Promise<void> {
    if (row === undefined || work.id === undefined || row.restore_id !== work.id) return
    if (row.restore_outcome === 'restored')
      await this.parts.db.transaction(async tx => await work.restored?.(tx))
    else if (row.restore_outcome === 'undone') work.undone?.()
  }

  async #putBackRestore(found: DatabaseRow, work: SettleWork): Promise<void> {
    const { store, board, provisioner, givenUp, db } = this.parts
    const { id } = found
    const { signal, restored } = work
    const { runtime, side } = this.#tools()
    await side.closeAll(found)
    if (found.former_volume !== null)
      await this.#settleSwitch(found, found.former_volume, { signal, restored })
    const row = (await store.find(id)) ?? found
    const before = row.status_before ?? 'running'
    const failure = await this.#failureOf(row, signal, async () => {
      if (before === 'running' || row.container_id === null) await provisioner.provision(row, signal)
      else if (before === 'failed' && !(await isRunning(runtime, row.container_id))) throw new Error(noServer)
      if (before === 'stopped') await this.#stopServing(runtime, (await store.find(id)) ?? row)
    })
    // As long as the database is busy, no volume of other work is among them.
    const left = await this.#leftVolumes(runtime, row)
    const status = before === 'stopped' ? 'stopped' : 'running'
    await db.transaction(async tx => {
      const changes = {
        ...(failure !== null && { status_detail: failure }),
        ...(work.id === undefined && { restore_outcome: row.restore_outcome ?? 'undone' })
      }
      if (await board.end(id, 'restore', failure === null ? status : 'failed', changes, tx))
        await givenUp.giveUp(id, left, tx)
    })
  }

  /** Cut off behind the switch: what the new server was given since is in no other volume, so the old one is for where it does not serve. */
  async #settleSwitch(row: DatabaseRow, former: string, { signal, restored }: SettleWork): Promise<void> {
    const { provisioner, log } = this.parts
    try {
      await provisioner.provision(row, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (isPassing(error)) throw error
      log.warn({ err: error, databaseId: row.id }, 'what was restored does not serve: what was there is back')
      await this.#goBack(row.id, former)
      return
    }
    await this.#keepRestored(row.id, restored)
  }

  /** Why its server does not serve, or null. Rejects where that may change: it is settled again. */
  async #failureOf(row: DatabaseRow, signal: AbortSignal, work: () => Promise<void>): Promise<string | null> {
    try {
      await work()
      return null
    } catch (error) {
      signal.throwIfAborted()
      if (isPassing(error)) throw error
      return this.parts.provisioner.reasonOf(row, error)
    }
  }

  /** Only what a drill has made: a backup may be under way beside it. */
  async settleCheck(id: string): Promise<void> {
    const { runtime } = this.#tools()
    for (const container of await runtime.list({ databaseId: id }))
      if (container.name.endsWith('-check')) await runtime.remove(container.id)
    for (const name of await runtime.volumeNames({ databaseId: id }))
      if (isCheckVolume(name)) await runtime.removeVolume(name)
  }

  /** The one from before the restore, and those of restores that came to nothing. What an upgrade keeps is its own. */
  async #leftVolumes(runtime: ContainerRuntime, row: DatabaseRow): Promise<readonly string[]> {
    const kept = [row.volume, ...(await this.parts.store.keptVolumes(row.id))]
    const names = await runtime.volumeNames({ databaseId: row.id })
    return names.filter(name => !kept.includes(name) && !isCheckVolume(name))
  }

  async #feed(side: SideServers, server: SideServer, dump: StoredDump, signal: AbortSignal): Promise<void> {
    const end = new AbortController()
    const follow = (): void => end.abort(signal.reason)
    signal.addEventListener('abort', follow, { once: true })
    try {
      await side.restore(server, dump.content, choiceOf(dump.databases), end)
    } catch (error) {
      end.abort(error)
      signal.throwIfAborted()
      throw error
    } finally {
      signal.removeEventListener('abort', follow)
    }
  }

  async #stopServing(runtime: ContainerRuntime, row: DatabaseRow): Promise<void> {
    if (row.container_id === null || (await runtime.inspect(row.container_id)) === undefined) return
    await this.parts.store.update(row.id, { stop_asked_at: this.parts.clock.now() })
    await runtime.stop(row.container_id, stopGraceSeconds)
  }

  #tools(): { runtime: ContainerRuntime; side: SideServers; files: FileServers } {
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    return {
      runtime,
      side: new SideServers(runtime, this.parts.servers),
      files: new FileServers(runtime, this.parts.servers)
    }
  }
}

const choiceOf = (databases: readonly string[]): DumpChoice =>
  databases.length === 0 ? { kind: 'all' } : { kind: 'only', names: databases }

const isRunning = async (runtime: ContainerRuntime, containerId: string): Promise<boolean> =>
  (await runtime.inspect(containerId))?.status === 'running'

const noServer =
  'its server does not run, as before the restore: its log says why; start it, reload it, or restore again'

const notStarted =
  'the database is gone, and with it what is known of its image: no server can be started with these files. Restore it to see whether they are good'

function assertFormat(known: string, given: string): void {
  if (known !== given) throw new Error(`the backup is written as ${given}, and this database reads ${known}`)
}

const sumOf = (counted: ReadonlyMap<string, number>): number =>
  [...counted.values()].reduce((sum, count) => sum + count, 0)

/** Of a database that is gone. */
const missingRow = (of: RemovedResource, now: Date): DatabaseRow => ({
  id: of.id,
  project_id: of.projectId,
  name: of.name,
  slug: of.slug,
  type: of.engine,
  version: of.version,
  status: 'creating',
  status_detail: null,
  task: null,
  status_before: null,
  image: null,
  image_reference: null,
  image_name: null,
  source_kind: null,
  source_ref: null,
  container_id: null,
  container_port: 0,
  data_dir: null,
  backup_mode: 'none',
  backup_command: null,
  restore_command: null,
  credentials: '',
  cpu_limit: 0,
  memory_limit: 0,
  volume: '',
  volume_bytes: null,
  former_volume: null,
  is_external: false,
  external_port: null,
  initialized_at: null,
  stop_asked_at: null,
  delete_backups: false,
  created_at: now,
  updated_at: now
})
