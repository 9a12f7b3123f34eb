import type { ContainerRuntime } from 'busbar/api/containers'
import type { Bus, Clock, Database, OptionalHandle, ProjectId } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseService } from '../records/database-service.js'
import type { DatabaseStore } from '../records/database-store.js'
import { portsChanged, type StatusBoard } from '../status/status-board.js'
import { applyLimits } from './resource-limits.js'
import { stopGraceSeconds } from './server-container.js'

interface ContainerControlParts {
  readonly databases: DatabaseService
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly db: Database
  readonly bus: Bus
  readonly clock: Clock
  readonly runtime: OptionalHandle<ContainerRuntime>
}

/** Start, stop and restart act on the container that exists; reload makes another one. */
export class ContainerControl {
  constructor(private readonly parts: ContainerControlParts) {}

  async start(projectId: ProjectId, id: string): Promise<void> {
    const { row, runtime, containerId } = await this.#locate(projectId, id)
    if (await this.#start(runtime, row, containerId)) await this.parts.board.set(id, 'running')
  }

  async stop(projectId: ProjectId, id: string): Promise<void> {
    const { runtime, containerId } = await this.#locate(projectId, id)
    await this.#noteStop(id)
    await runtime.stop(containerId, stopGraceSeconds)
    await this.parts.board.set(id, 'stopped')
  }

  async restart(projectId: ProjectId, id: string): Promise<void> {
    const { row, runtime, containerId } = await this.#locate(projectId, id)
    await this.#noteStop(id)
    const state = await runtime.inspect(containerId)
    const runs = state?.status === 'running'
    if (runs) await runtime.restart(containerId, stopGraceSeconds)
    if (runs || (await this.#start(runtime, row, containerId))) await this.parts.board.set(id, 'running')
  }

  /** Its data stays; settings of today, and the image of before. */
  async reload(projectId: ProjectId, id: string): Promise<{ status: string }> {
    const { db, board, databases, clock } = this.parts
    await databases.row(projectId, id)
    await db.transaction(async tx => {
      await board.begin(
        id,
        { task: 'provision', status: 'creating', from: ['running', 'stopped', 'failed'] },
        { container_id: null, updated_at: clock.now() },
        tx
      )
      await databases.enqueue(id, tx)
    })
    return { status: 'creating' }
  }

  async setExternal(projectId: ProjectId, id: string, isEnabled: boolean): Promise<{ status: string }> {
    const { db, bus, store, databases, clock } = this.parts
    const row = await databases.row(projectId, id)
    if (row.task !== null) throw problems.busy({ what: row.status.replace('_', ' ') })
    if (row.status !== 'running') throw problems.notRunning({ status: row.status })
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

  /**
   * With limits that were set while it was stopped: its container has those that it was made with. False where it has ended already,
   * which nothing can be limited in, though the engine may have started it again since: events of the engine say so.
   */
  async #start(runtime: ContainerRuntime, row: DatabaseRow, containerId: string): Promise<boolean> {
    await runtime.start(containerId)
    const begun = await runtime.inspect(containerId)
    if (begun?.status !== 'running') return false
    try {
      await applyLimits(runtime, containerId, row)
      return true
    } catch (error) {
      const seen = await runtime.inspect(containerId)
      const isTheSame = seen?.status === 'running' && seen.startedAt === begun.startedAt
      if (isTheSame) throw error
      return false
    }
  }

  async #noteStop(id: string): Promise<void> {
    // Before it ends: how it does may look like a crash.
    await this.parts.store.update(id, { stop_asked_at: this.parts.clock.now() })
  }

  async #locate(
    projectId: ProjectId,
    id: string
  ): Promise<{ row: DatabaseRow; runtime: ContainerRuntime; containerId: string }> {
    const row = await this.parts.databases.row(projectId, id)
    if (row.task !== null) throw problems.busy({ what: row.status.replace('_', ' ') })
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    const { container_id: containerId, slug } = row
    if (containerId === null || (await runtime.inspect(containerId)) === undefined)
      throw problems.noContainer({ slug })
    return { row, runtime, containerId }
  }
}
