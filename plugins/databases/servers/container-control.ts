import type { ContainerRuntime } from 'busbar/api/containers'
import type { Bus, Clock, Database, OptionalHandle, ProjectId } from 'busbar/sdk'
import { problems } from '../problems.js'
import { type DatabaseRow, doing } from '../records/database-row.js'
import type { DatabaseService } from '../records/database-service.js'
import type { DatabaseStore } from '../records/database-store.js'
import { statusOf } from '../status/container-status.js'
import { portsChanged, type StatusBoard } from '../status/status-board.js'
import type { ControlHold, Controlled } from './control-hold.js'
import type { ExternalReach } from './external-reach.js'
import { removeSource } from './provisioner.js'
import { limitRunning } from './resource-limits.js'
import { stopGraceSeconds } from './server-container.js'

interface ContainerControlParts {
  readonly databases: DatabaseService
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly hold: Pick<ControlHold, 'during'>
  readonly reach: ExternalReach
  readonly db: Database
  readonly bus: Bus
  readonly clock: Clock
  readonly runtime: OptionalHandle<ContainerRuntime>
}

/** Start, stop and restart act on the container that exists; reload makes another one. */
export class ContainerControl {
  constructor(private readonly parts: ContainerControlParts) {}

  async start(projectId: ProjectId, id: string): Promise<void> {
    await this.#held(
      projectId,
      id,
      true,
      async (runtime, containerId, row) => await this.#start(runtime, row, containerId)
    )
  }

  async stop(projectId: ProjectId, id: string): Promise<void> {
    await this.#held(projectId, id, false, async (runtime, containerId) => {
      await this.#noteStop(id)
      await runtime.stop(containerId, stopGraceSeconds)
      return { status: 'stopped', reason: null }
    })
  }

  async restart(projectId: ProjectId, id: string): Promise<void> {
    await this.#held(projectId, id, true, async (runtime, containerId, row) => {
      await this.#noteStop(id)
      if ((await runtime.inspect(containerId))?.status !== 'running')
        return await this.#start(runtime, row, containerId)
      await removeSource(runtime, row)
      await runtime.restart(containerId, stopGraceSeconds)
      return await begun(runtime, containerId)
    })
  }

  /** Its data stays; settings of today, and the image of before. */
  async reload(projectId: ProjectId, id: string): Promise<{ status: string }> {
    const { db, board, databases, clock } = this.parts
    await databases.row(projectId, id)
    await db.transaction(async tx => {
      await board.begin(
        id,
        { task: 'provision', status: 'creating', from: ['running', 'stopped', 'failed'] },
        { is_remade: true, updated_at: clock.now() },
        tx
      )
      await databases.enqueue(id, tx)
    })
    return { status: 'creating' }
  }

  async setExternal(projectId: ProjectId, id: string, isEnabled: boolean): Promise<{ status: string }> {
    const { db, bus, store, databases, clock, reach } = this.parts
    const row = await databases.row(projectId, id)
    if (row.task !== null) throw problems.busy({ what: doing(row) })
    if (row.status !== 'running') throw problems.notRunning({ status: row.status })
    if (isEnabled) await reach.check(id)
    await db.transaction(async tx => {
      await store.update(
        id,
        { is_external: isEnabled, ...(!isEnabled && { external_port: null }), updated_at: clock.now() },
        tx
      )
      await bus.signal(portsChanged, id, tx)
    })
    return { status: isEnabled ? 'enabling' : 'disabling' }
  }

  /** With limits that were set while it was stopped: its container has those that it was made with. It may have ended already. */
  async #start(runtime: ContainerRuntime, row: DatabaseRow, containerId: string): Promise<Controlled> {
    await removeSource(runtime, row)
    await runtime.start(containerId)
    const limits = await this.parts.store.find(row.id)
    if (limits !== undefined && (await limitRunning(runtime, containerId, limits)))
      return { status: 'running', reason: null }
    return await begun(runtime, containerId)
  }

  /** Works on the container while nothing else is begun with the database. */
  async #held(
    projectId: ProjectId,
    id: string,
    isStart: boolean,
    work: (runtime: ContainerRuntime, containerId: string, row: DatabaseRow) => Promise<Controlled>
  ): Promise<void> {
    const { runtime } = await this.#locate(projectId, id)
    await this.parts.hold.during(id, { isStart }, async row => await work(runtime, containerOf(row), row))
  }

  async #noteStop(id: string): Promise<void> {
    // Before it ends: how it does may look like a crash.
    await this.parts.store.update(id, { stop_asked_at: this.parts.clock.now() })
  }

  async #locate(projectId: ProjectId, id: string): Promise<{ runtime: ContainerRuntime }> {
    const row = await this.parts.databases.row(projectId, id)
    if (row.task !== null) throw problems.busy({ what: doing(row) })
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    if ((await runtime.inspect(containerOf(row))) === undefined)
      throw problems.noContainer({ slug: row.slug })
    return { runtime }
  }
}

/** What has become of it since it was started: its server may have ended at once. */
async function begun(runtime: ContainerRuntime, containerId: string): Promise<Controlled> {
  return statusOf('running', await runtime.inspect(containerId))
}

function containerOf({ container_id: containerId, slug }: DatabaseRow): string {
  if (containerId === null) throw problems.noContainer({ slug })
  return containerId
}
