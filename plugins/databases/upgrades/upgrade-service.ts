import { randomUUID } from 'node:crypto'
import type { ContainerRuntime } from 'busbar/api/containers'
import {
  type Clock,
  type Database,
  type Log,
  type OptionalHandle,
  type Page,
  type ProjectId,
  type Rows,
  settleAll
} from 'busbar/sdk'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseService } from '../records/database-service.js'
import type { SealedCredentials } from '../records/sealed-credentials.js'
import type { UpgradeAnswer } from '../schemas.js'
import type { WorkQueue } from '../servers/work-queue.js'
import type { StatusBoard } from '../status/status-board.js'
import type { UpgradeStore } from './upgrade-store.js'

interface UpgradeServiceParts {
  readonly upgrades: UpgradeStore
  readonly databases: DatabaseService
  readonly board: StatusBoard
  readonly engines: EngineChoice
  readonly sealed: Pick<SealedCredentials, 'open'>
  readonly db: Database
  readonly queue: Pick<WorkQueue, 'enqueue'>
  readonly clock: Clock
  readonly log: Log
  readonly runtime: OptionalHandle<ContainerRuntime>
}

const versionShape = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/

/** What is asked of upgrades, and what is told. The work is `UpgradeRunner`'s. */
export class UpgradeService {
  constructor(private readonly parts: UpgradeServiceParts) {}

  async begin(projectId: ProjectId, id: string, wanted: string | undefined): Promise<{ status: string }> {
    const { upgrades, databases, board, engines, sealed, db, queue, clock } = this.parts
    const row = await databases.row(projectId, id)
    const target = wanted?.trim() ?? ''
    const engine = await engines.of(row.type)
    if (engine.upgradeRefusal === undefined) throw problems.notUpgradable({ type: row.type })
    if (!versionShape.test(target))
      throw problems.invalid({ field: 'target_version', reason: 'must be the tag of an image, such as 17' })
    const reason = engine.upgradeRefusal(row.version, target)
    if (reason !== null) throw problems.olderVersion({ reason })
    // Without them nothing could be copied.
    sealed.open(row)
    await db.transaction(async tx => {
      const held = await board.begin(
        id,
        { task: 'upgrade', status: 'upgrading', from: ['running'], detail: 'waiting for its turn' },
        {},
        tx
      )
      await upgrades.insert(
        {
          id: randomUUID(),
          database_id: id,
          phase: 'running',
          from_version: held.version,
          to_version: target,
          former_volume: held.volume,
          former_image: held.image,
          former_image_reference: held.image_reference,
          former_image_name: held.image_name,
          log: '',
          error: null,
          begun_at: null,
          started_at: clock.now(),
          finished_at: null,
          kept_until: null,
          kept_volume: null
        },
        tx
      )
      await queue.enqueue('upgrade', id, tx)
    })
    return { status: 'upgrading' }
  }

  async list(projectId: ProjectId, id: string, page: Page): Promise<Rows<UpgradeAnswer>> {
    await this.parts.databases.row(projectId, id)
    return await this.parts.upgrades.list(id, page)
  }

  /** The volumes that are kept go. */
  async confirm(projectId: ProjectId, id: string): Promise<{ status: string }> {
    const { upgrades, databases } = this.parts
    await databases.row(projectId, id)
    const kept = await upgrades.kept({ databaseId: id })
    if (kept.length === 0) throw problems.noUpgrade()
    await settleAll(kept.map(async one => await this.#forget(one)))
    return { status: 'confirmed' }
  }

  /** Those that nobody has confirmed in time. */
  async removeKept(): Promise<void> {
    const { upgrades, clock, log, runtime } = this.parts
    if (runtime.get() === undefined) return
    for (const one of await upgrades.kept({ before: clock.now() }))
      await this.#forget(one).catch((error: unknown) =>
        log.warn(
          { err: error, databaseId: one.database_id },
          'an old volume of a database could not be removed'
        )
      )
  }

  async #forget({ id, volume }: { readonly id: string; readonly volume: string }) {
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    await runtime.removeVolume(volume)
    await this.parts.upgrades.update(id, { kept_until: null })
  }
}
