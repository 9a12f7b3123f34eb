import type { ContainerRuntime } from 'busbar/api/containers'
import type { ProjectDirectory } from 'busbar/api/projects'
import { type Clock, isProblem, type Log, type OptionalHandle } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseService } from '../records/database-service.js'
import type { DatabaseStore } from '../records/database-store.js'
import { isCheckVolume, sideName } from '../records/slug.js'
import type { StatusBoard } from '../status/status-board.js'
import type { ImageSource } from './image-source.js'
import { limitRunning } from './resource-limits.js'
import { type ServerContainer, ServerFailed, stopGraceSeconds } from './server-container.js'

interface ProvisionerParts {
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly images: ImageSource
  readonly servers: ServerContainer
  readonly projects: ProjectDirectory
  readonly databases: Pick<DatabaseService, 'measure'>
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly clock: Clock
  readonly log: Log
}

/** The engine, plugins, and the platform's own database. */
const passing = [
  'E_ENGINE_UNREACHABLE',
  'E_PLUGIN_OFF',
  'E_DATABASE_UNREACHABLE',
  'E_DATABASE_BUSY',
  'E_DATABASE_LOCKED',
  'E_DATABASE_LOCK_ROOM'
]
const mostAttempts = 8

/** Of what is away for a moment. */
export const isPassing = (error: unknown): boolean => isProblem(error) && passing.includes(error.code)

/**
 * Whether what was there before is brought back. Where others may have reached the new server, only if that does not serve: rows that it has
 * taken are nowhere else, and an engine that refuses it, or has no room for it now, may take it later.
 */
export const isGivenUp = (
  error: unknown,
  present: Pick<DatabaseRow, 'container_id'> | undefined
): error is Error =>
  error instanceof ServerFailed || (isProblem(error) && !isPassing(error) && present?.container_id == null)

/** Makes the serving container of a database: the first one, and each that takes the place of another. */
export class Provisioner {
  constructor(private readonly parts: ProvisionerParts) {}

  /** The whole of the job: it goes on where a process has ended in the middle. Rejects only where it is to be tried again. */
  async run(id: string, attempt: number, signal: AbortSignal): Promise<void> {
    const { store, board, log } = this.parts
    const row = await store.find(id)
    if (row?.task !== 'provision') return
    try {
      await this.provision(row, signal)
      await board.end(id, 'provision', 'running', {
        initialized_at: row.initialized_at ?? this.parts.clock.now()
      })
    } catch (error) {
      signal.throwIfAborted()
      if (isPassing(error) && attempt < mostAttempts) {
        await store.say(id, 'provision', this.reasonOf(row, error))
        throw error
      }
      log.warn({ err: error, databaseId: id }, 'a database could not be made')
      const reason = this.reasonOf(row, error)
      const isServing = await this.#isServing(id)
      if (!isServing) await this.#stop(id)
      await board.end(id, 'provision', isServing ? 'running' : 'failed', {
        is_remade: false,
        status_detail: isServing
          ? `its container was not made anew, and the one of before serves on: ${reason}`
          : reason
      })
    }
  }

  /** Resolves when the serving container runs and its server answers. `alsoKept`: images beside its own that are needed still. */
  async provision(
    row: DatabaseRow,
    signal: AbortSignal,
    alsoKept: ReadonlyArray<string | null> = []
  ): Promise<void> {
    const { store, runtime: engine, servers } = this.parts
    const runtime = engine.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    const say = (detail: string): void => {
      void store.say(row.id, 'provision', servers.clean(row, detail)).catch(() => {})
    }
    const containerId =
      (await this.#current(runtime, row)) ?? (await this.#make(runtime, row, { say, signal, alsoKept }))
    await removeSource(runtime, row)
    await runtime.start(containerId)
    say('waiting for its server to answer')
    await servers.untilReady(runtime, row, containerId, signal)
    const made = await store.find(row.id)
    if (made === undefined) return
    if (made.are_limits_due === true || !haveSameLimits(made, row))
      await this.#limit(runtime, containerId, made)
    // It may take the engine long, and nobody waits for it.
    void this.parts.databases.measure(runtime, made).catch(() => {})
  }

  /** They may have been set while it was made, or did not run. */
  async #limit(runtime: ContainerRuntime, containerId: string, row: DatabaseRow): Promise<void> {
    const { store, log } = this.parts
    try {
      if (await limitRunning(runtime, containerId, row)) await store.update(row.id, { are_limits_due: false })
    } catch (error) {
      log.warn({ err: error, databaseId: row.id }, 'the limits of a database could not be set')
    }
  }

  /** Whether the container of before a reload runs, which was not touched. */
  async #isServing(id: string): Promise<boolean> {
    const row = await this.parts.store.find(id)
    if (row?.is_remade !== true || row.container_id === null) return false
    const state = await this.parts.runtime
      .get()
      ?.inspect(row.container_id)
      .catch(() => undefined)
    return state?.status === 'running'
  }

  /** What ends again and again is started no more: it has failed, and says why. */
  async #stop(id: string): Promise<void> {
    const row = await this.parts.store.find(id)
    if (row?.container_id == null || row.is_remade === true) return
    await this.parts.runtime
      .get()
      ?.stop(row.container_id, stopGraceSeconds)
      .catch(() => {})
  }

  reasonOf(row: DatabaseRow, error: unknown): string {
    return this.parts.servers.clean(row, error instanceof Error ? error.message : String(error))
  }

  /** What an earlier attempt has made. */
  async #current(runtime: ContainerRuntime, row: DatabaseRow): Promise<string | undefined> {
    if (row.container_id === null || row.is_remade === true) return undefined
    return (await runtime.inspect(row.container_id)) === undefined ? undefined : row.container_id
  }

  async #make(
    runtime: ContainerRuntime,
    row: DatabaseRow,
    {
      say,
      signal,
      alsoKept
    }: {
      readonly say: (detail: string) => void
      readonly signal: AbortSignal
      readonly alsoKept: ReadonlyArray<string | null>
    }
  ): Promise<string> {
    const { store, images, projects, servers } = this.parts
    const project = await projects.find(row.project_id)
    if (project === undefined) throw problems.projectGone({ projectId: row.project_id })
    // What one cannot be made without is known before the one of before is removed.
    await servers.engineOf(row)
    say(`fetching ${row.image ?? 'its image'}`)
    const image = await images.again(row, { say, signal })
    // Before anything is made of it: one without an image has nothing on the engine (`wasMade`).
    await store.update(row.id, { image_reference: image.reference, image_name: image.name })
    await images.keep(row.id, [image.reference, ...alsoKept])
    const network = await runtime.ensureNetwork(project)
    say('making its container')
    await removeNamed(runtime, row, row.slug)
    const owner = { projectId: row.project_id, databaseId: row.id }
    // What a server has left that never answered is nobody's: another one would not go on from there.
    if (row.initialized_at === null) await runtime.removeVolume(row.volume)
    else await assertVolume(runtime, row)
    await runtime.ensureVolume(row.volume, owner)
    const containerId = await servers.create(runtime, row, {
      name: row.slug,
      network,
      imageName: image.name,
      volume: row.volume,
      isEmpty: false
    })
    await store.update(row.id, { container_id: containerId, is_remade: false })
    return containerId
  }
}

/** An empty server is no database that somebody has lost: where its volume is gone, and others of it are there, one of these may have it. */
async function assertVolume(runtime: ContainerRuntime, { id, volume }: DatabaseRow): Promise<void> {
  const names = (await runtime.volumeNames({ databaseId: id })).filter(name => !isCheckVolume(name))
  if (names.length > 0 && !names.includes(volume))
    throw new Error(
      `its volume ${volume} is not on the engine, and others of it are: ${names.sort().join(', ')}. Find on its machine which of them has the data and copy it into one of that name, or restore a backup`
    )
}

const haveSameLimits = (one: DatabaseRow, other: DatabaseRow): boolean =>
  one.cpu_limit === other.cpu_limit && one.memory_limit === other.memory_limit

/**
 * Before the serving container starts: a platform that was killed while it copied, and then restored from an archive of before, knows
 * nothing of the server that reads the same volume, and two of them would spoil it.
 */
export async function removeSource(
  runtime: ContainerRuntime,
  row: Pick<DatabaseRow, 'id' | 'slug'>
): Promise<void> {
  await removeNamed(runtime, row, sideName(row, 'source'))
}

/** Those of the database that have one of these names, or any where none is given. */
export async function removeNamed(
  runtime: ContainerRuntime,
  { id: databaseId }: Pick<DatabaseRow, 'id'>,
  ...names: readonly string[]
): Promise<void> {
  for (const container of await runtime.list({ databaseId }))
    if (names.length === 0 || names.includes(container.name)) {
      // It closes its files: what is killed has to recover.
      if (container.status === 'running') await runtime.stop(container.id, stopGraceSeconds)
      await runtime.remove(container.id)
    }
}
