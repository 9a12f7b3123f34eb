import { randomUUID } from 'node:crypto'
import type { StoredDump } from 'busbar/api/backups'
import type { EngineDiskReader } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock, Database, Log, OptionalHandle } from 'busbar/sdk'
import type { DumpChoice } from '../api.js'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseStore } from '../records/database-store.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import { FileServers } from '../servers/file-servers.js'
import type { ImageSource } from '../servers/image-source.js'
import { isPassing, type Provisioner } from '../servers/provisioner.js'
import { type ServerContainer, stopGraceSeconds } from '../servers/server-container.js'
import { type SideServer, SideServers } from '../servers/side-servers.js'
import type { StatusBoard } from '../status/status-board.js'

export interface RunParts {
  readonly store: DatabaseStore
  readonly board: StatusBoard
  readonly engines: EngineChoice
  readonly images: ImageSource
  readonly servers: ServerContainer
  readonly sealed: SealedCredentials
  readonly provisioner: Provisioner
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly disk: OptionalHandle<EngineDiskReader>
}

interface Tools {
  readonly runtime: ContainerRuntime
  readonly side: SideServers
  readonly files: FileServers
}

/** What dumps, restores and drills of databases have in common. */
export class RunKit {
  constructor(readonly parts: RunParts) {}

  /** 503 where the plugin `containers` is off. */
  tools(): Tools {
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    return {
      runtime,
      side: new SideServers(runtime, this.parts.servers),
      files: new FileServers(runtime, this.parts.servers)
    }
  }

  /** Before anything is begun: without its credentials its server could neither be asked nor be put back. */
  async readable(id: string): Promise<DatabaseRow> {
    const { store, sealed } = this.parts
    const row = await store.find(id)
    if (row === undefined) throw problems.notFound({ databaseId: id })
    sealed.open(row)
    return row
  }

  /** Why its server does not serve, or null. Rejects where that may change: it is settled again. */
  async failureOf(row: DatabaseRow, signal: AbortSignal, work: () => Promise<void>): Promise<string | null> {
    try {
      await work()
      return null
    } catch (error) {
      signal.throwIfAborted()
      if (isPassing(error)) throw error
      return this.parts.provisioner.reasonOf(row, error)
    }
  }

  /** Restores what was dumped into a server beside the one that serves; where it fails, both ends are closed. */
  async feed(side: SideServers, server: SideServer, dump: StoredDump, signal: AbortSignal): Promise<void> {
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

  async stopServing(runtime: ContainerRuntime, row: DatabaseRow): Promise<void> {
    if (row.container_id === null || (await runtime.inspect(row.container_id)) === undefined) return
    await this.parts.store.update(row.id, { stop_asked_at: this.parts.clock.now() })
    await runtime.stop(row.container_id, stopGraceSeconds)
  }
}

/** Of the name of a volume: no other has it. */
export const partOf = (): string => randomUUID().slice(0, 8)

export const choiceOf = (databases: readonly string[]): DumpChoice =>
  databases.length === 0 ? { kind: 'all' } : { kind: 'only', names: databases }

export const isRunning = async (runtime: ContainerRuntime, containerId: string): Promise<boolean> =>
  (await runtime.inspect(containerId))?.status === 'running'

export function assertFormat(known: string, given: string): void {
  if (known !== given) throw new Error(`the backup is written as ${given}, and this database reads ${known}`)
}

export const sumOf = (counted: ReadonlyMap<string, number>): number =>
  [...counted.values()].reduce((sum, count) => sum + count, 0)
