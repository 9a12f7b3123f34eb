import { randomBytes, randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { PublicAddress } from 'busbar/api/domains'
import type { ProjectDirectory } from 'busbar/api/projects'
import {
  bounded,
  type Clock,
  type Database,
  type OptionalHandle,
  type Page,
  type ProjectId,
  pause,
  type Rows,
  type Tx
} from 'busbar/sdk'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { CreateBody, DatabaseAnswer, UpdateBody } from '../schemas.js'
import { checkLimits, limitRunning, readCores } from '../servers/resource-limits.js'
import type { WorkQueue } from '../servers/work-queue.js'
import type { Settings } from '../settings.js'
import { decideCreation } from './create-decision.js'
import { databaseAnswer, mayMiss } from './database-answer.js'
import type { DatabaseRow } from './database-row.js'
import type { DatabaseStore } from './database-store.js'
import { newRow } from './new-row.js'
import type { SealedCredentials } from './sealed-credentials.js'
import { databaseSlug, volumeOf } from './slug.js'

interface DatabaseServiceParts {
  readonly store: DatabaseStore
  readonly db: Database
  readonly clock: Clock
  readonly queue: Pick<WorkQueue, 'enqueue'>
  readonly sealed: SealedCredentials
  readonly engines: EngineChoice
  readonly projects: ProjectDirectory
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly address: OptionalHandle<PublicAddress>
  readonly config: Settings
}

/** How long an answer waits for what the engine says of containers. */
const lookMs = 3000
const measureMs = 10_000
const takeUpEveryMs = 15 * 60_000
const newPassword = (): string => randomBytes(16).toString('hex')

/** The rules about databases as records. */
export class DatabaseService {
  constructor(private readonly parts: DatabaseServiceParts) {}

  async list(projectId: ProjectId, page: Page): Promise<Rows<DatabaseAnswer>> {
    const { rows, total } = await this.parts.store.list(projectId, page)
    const missing = await this.#missing(projectId, rows)
    const sshHost = await this.#sshHost(rows)
    return { rows: rows.map(row => this.#answer(row, missing.has(row.id), sshHost)), total }
  }

  async get(projectId: ProjectId, id: string): Promise<DatabaseAnswer> {
    const row = await this.row(projectId, id)
    const missing = await this.#missing(projectId, [row])
    return this.#answer(row, missing.has(id), await this.#sshHost([row]))
  }

  async row(projectId: ProjectId, id: string): Promise<DatabaseRow> {
    const row = await this.parts.store.get(projectId, id)
    if (row === undefined) throw problems.notFound({ databaseId: id })
    return row
  }

  async create(projectId: ProjectId, body: CreateBody): Promise<DatabaseAnswer> {
    const { db, engines, sealed, clock } = this.parts
    const id = randomUUID()
    const kind = engines.wanted(body.type)
    const made = decideCreation(body, kind)
    const engine = await engines.of(body.type)
    const now = clock.now()
    return await db.transaction(async tx => {
      const project = await this.parts.projects.find(projectId, tx)
      if (project === undefined) throw problems.projectGone({ projectId })
      const slug = databaseSlug(project.slug, body.slug?.trim() || body.name, id)
      const credentials =
        kind.defaults === null
          ? made.env
          : engine.newCredentials(body.credentials ?? {}, { name: body.name, slug, password: newPassword })
      const row: DatabaseRow = {
        id,
        ...newRow(now),
        project_id: projectId,
        name: body.name,
        slug,
        type: body.type,
        version: made.version,
        task: 'provision',
        image: made.image,
        image_reference: null,
        container_port: made.port,
        data_dir: made.dataDir,
        backup_mode: made.backupMode,
        backup_command: made.backupCommand,
        restore_command: made.restoreCommand,
        credentials: sealed.seal(id, credentials),
        cpu_limit: 0,
        memory_limit: 0,
        volume: volumeOf(slug)
      }
      await this.insert(row, tx)
      return this.#answer(row, false, '')
    })
  }

  /** A row that is to be made: its job comes with it. */
  async insert(row: DatabaseRow, tx: Tx): Promise<void> {
    await this.parts.store.insert(row, tx)
    await this.enqueue(row.id, tx)
  }

  async enqueue(id: string, tx: Tx): Promise<void> {
    await this.parts.queue.enqueue('provision', id, tx)
  }

  /** What lost its job, as one does that has failed too often, gets another; where there is one still, this one finds nothing to do. */
  async takeUp(signal: AbortSignal): Promise<void> {
    const { store, queue, clock } = this.parts
    while (!signal.aborted) {
      for (const { id, task } of await store.unfinished()) await queue.enqueue(task, id)
      await pause(clock, takeUpEveryMs, signal)
    }
  }

  async update(projectId: ProjectId, id: string, body: UpdateBody): Promise<DatabaseAnswer> {
    const { store, runtime, clock } = this.parts
    const engine = runtime.get()
    checkLimits(body, (body.cpu_limit ?? 0) > 0 ? await readCores(engine) : undefined)
    const row = await this.row(projectId, id)
    const limits = {
      cpu_limit: body.cpu_limit ?? row.cpu_limit,
      memory_limit: body.memory_limit ?? row.memory_limit
    }
    // An engine may refuse what is less than the server has taken already: then the record stays as it is.
    const limited = await this.#limit(row, limits)
    await store.update(id, { ...limits, are_limits_due: limited === null, updated_at: clock.now() })
    // One that was made or started meanwhile has those of before; whoever does that looks at the record afterwards.
    const after = await this.row(projectId, id)
    if (after.container_id !== limited && (await this.#limit(after, limits)) !== null)
      await store.update(id, { are_limits_due: false })
    return await this.get(projectId, id)
  }

  /** In the container that runs, whatever else is done with the database; its id, or null where none does. */
  async #limit(
    { container_id: containerId, status, task }: DatabaseRow,
    limits: Pick<DatabaseRow, 'cpu_limit' | 'memory_limit'>
  ): Promise<string | null> {
    if (containerId === null || (status !== 'running' && task === null)) return null
    const engine = this.parts.runtime.get()
    if (engine === undefined) throw problems.containersOff({ plugin: 'containers' })
    return (await limitRunning(engine, containerId, limits)) ? containerId : null
  }

  async reveal(
    projectId: ProjectId,
    id: string
  ): Promise<{ credentials: Record<string, string>; connection_string: string }> {
    const { engines, sealed } = this.parts
    const row = await this.row(projectId, id)
    const engine = await engines.of(row.type)
    const database = sealed.forEngine(row)
    return {
      credentials: { ...database.credentials },
      connection_string: engine.connectionString(database, row.slug) ?? ''
    }
  }

  async volume(projectId: ProjectId, id: string): Promise<{ name: string; size_bytes: number | null }> {
    const row = await this.row(projectId, id)
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    return { name: row.volume, size_bytes: await this.measure(runtime, row) }
  }

  /** Null where it could not be measured in time; otherwise answers show it from then on. */
  async measure(runtime: ContainerRuntime, row: Pick<DatabaseRow, 'id' | 'volume'>): Promise<number | null> {
    const bytes = await this.volumeBytes(runtime, row)
    if (bytes !== null) await this.parts.store.update(row.id, { volume_bytes: bytes })
    return bytes
  }

  /** Null where it could not be measured in time. */
  async volumeBytes(
    runtime: ContainerRuntime,
    row: Pick<DatabaseRow, 'id' | 'volume'>,
    ms = measureMs
  ): Promise<number | null> {
    const look = bounded(async () => await runtime.volumes({ databaseId: row.id }), {
      ms,
      what: 'the size of a volume'
    })
    const found = await look.then(
      volumes => volumes.find(({ name }) => name === row.volume)?.sizeBytes,
      () => undefined
    )
    return found ?? null
  }

  /** The ids of those whose container is not there; none where the engine does not say. */
  async #missing(projectId: string, rows: readonly DatabaseRow[]): Promise<ReadonlySet<string>> {
    const runtime = this.parts.runtime.get()
    const asked = rows.filter(mayMiss)
    if (runtime === undefined || asked.length === 0) return new Set()
    const look = bounded(async () => await runtime.list({ projectId }), {
      ms: lookMs,
      what: 'the container engine'
    })
    return await look.then(
      containers => {
        const there = new Set(containers.map(({ id }) => id))
        return new Set(
          asked.flatMap(({ id, container_id: container }) =>
            container === null || !there.has(container) ? [id] : []
          )
        )
      },
      () => new Set<string>()
    )
  }

  /** Where a tunnel to them begins: what is set, else the address of this server, as far as that is known. */
  async #sshHost(rows: readonly DatabaseRow[]): Promise<string> {
    const { address, config } = this.parts
    if (config.ssh_host !== undefined) return config.ssh_host
    if (!rows.some(row => row.is_external)) return ''
    const known = await address
      .get()
      ?.read()
      .catch(() => undefined)
    return known ?? ''
  }

  #answer(row: DatabaseRow, isMissing: boolean, sshHost: string): DatabaseAnswer {
    const { ssh_user: sshUser = '' } = this.parts.config
    return databaseAnswer(row, { isMissing, sshHost, sshUser })
  }
}
