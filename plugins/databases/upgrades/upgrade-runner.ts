import { type EngineDiskReader, type PreparedImage, whileThereIsRoom } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { Clock, Database, Events, Log, OptionalHandle } from 'busbar/sdk'
import { databaseFailed } from '../api.js'
import type { EngineChoice } from '../engines/engine-choice.js'
import { problems } from '../problems.js'
import type { DatabaseRow } from '../records/database-row.js'
import type { DatabaseService } from '../records/database-service.js'
import type { DatabaseStore } from '../records/database-store.js'
import { nextVolumeOf } from '../records/slug.js'
import type { ImageSource } from '../servers/image-source.js'
import { isGivenUp, isPassing, type Provisioner } from '../servers/provisioner.js'
import { type ServerContainer, stopGraceSeconds } from '../servers/server-container.js'
import { SideServers } from '../servers/side-servers.js'
import type { StatusBoard } from '../status/status-board.js'
import { checkRoom } from './upgrade-room.js'
import type { UpgradeRow, UpgradeStore } from './upgrade-store.js'

interface UpgradeRunnerParts {
  readonly upgrades: UpgradeStore
  readonly store: DatabaseStore
  readonly databases: DatabaseService
  readonly board: StatusBoard
  readonly images: ImageSource
  readonly servers: ServerContainer
  readonly engines: EngineChoice
  readonly provisioner: Provisioner
  readonly db: Database
  readonly events: Events
  readonly clock: Clock
  readonly log: Log
  readonly keepDays: number
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly disk: OptionalHandle<EngineDiskReader>
}

const dayMs = 86_400_000
/** Nobody waits for an answer: an engine walks through all its volumes. */
const longMeasureMs = 15 * 60_000

/** Of an upgrade that is not any more as this process knows it: it is taken up anew, as it is by now. */
class TakenOver extends Error {
  constructor() {
    super('another process goes on with the upgrade')
  }
}

/** What one upgrade works with. */
interface Work {
  readonly upgrade: UpgradeRow
  readonly row: DatabaseRow
  readonly runtime: ContainerRuntime
  readonly side: SideServers
  readonly volume: string
  readonly say: (line: string) => Promise<void>
  readonly signal: AbortSignal
}

/**
 * Brings a database to another version. The old volume is never written to but by its own server, and stays whole: everything is
 * copied into a new one beside it, first for a trial while the old server serves, then from a server that nobody else reaches, so
 * that nothing is lost that was acknowledged. One transaction is the switch. Whatever fails, and whenever the process ends, before
 * it or while the new server is proven, brings the old one back.
 */
export class UpgradeRunner {
  constructor(private readonly parts: UpgradeRunnerParts) {}

  /** The whole of the job. Rejects only where it is to be tried again. */
  async run(databaseId: string, signal: AbortSignal): Promise<void> {
    const { upgrades, store, runtime: engine, servers, clock } = this.parts
    const row = await store.find(databaseId)
    const upgrade = await upgrades.open(databaseId)
    if (row?.task !== 'upgrade' || upgrade === undefined) return
    const runtime = engine.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    const say = async (line: string): Promise<void> => {
      const clean = servers.clean(row, line)
      await upgrades.say(upgrade.id, `${clock.now().toISOString()} ${clean}`)
      await store.say(databaseId, 'upgrade', clean)
    }
    const work: Work = {
      upgrade,
      row,
      runtime,
      side: new SideServers(runtime, servers),
      volume: nextVolumeOf(row.slug, upgrade.id.slice(0, 8)),
      say,
      signal
    }
    if (upgrade.phase === 'running') {
      const failure = await this.#begin(work)
      if (failure !== null) {
        await this.#bringBack(work, failure)
        return
      }
    }
    await this.#prove({ ...work, upgrade: { ...upgrade, phase: 'switched', error: null } })
  }

  /** Up to the switch; why it came to nothing, or null. */
  async #begin(work: Work): Promise<string | null> {
    const { upgrades, clock, servers, log } = this.parts
    const { upgrade, row, signal } = work
    // One that has begun is not begun again: what is there of it is thrown away.
    if (upgrade.begun_at !== null)
      return upgrade.error ?? 'the platform ended while the upgrade was under way'
    try {
      await upgrades.update(upgrade.id, { begun_at: clock.now() })
      await this.#copy(work)
      return null
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof TakenOver) throw error
      log.warn({ err: error, databaseId: row.id }, 'an upgrade of a database failed')
      return servers.clean(row, error instanceof Error ? error.message : String(error))
    }
  }

  /** Up to the switch. */
  async #copy(work: Work): Promise<void> {
    const { upgrade, row, volume, say, signal } = work
    const { images, upgrades, store, db, engines } = this.parts
    const image = engines.kindOf(row.type).image(upgrade.to_version)
    await say(`fetching ${image}`)
    const fetched = await images.fetch(row, image, { say: () => {}, signal })
    await images.keep(row.id, [row.image_reference, fetched.reference])
    await this.#checkRoom(work)
    const next = { ...row, version: upgrade.to_version }
    // Servers that begin take room as well.
    await whileThereIsRoom(this.parts, signal, async bounds => {
      await this.#trial({ ...work, signal: bounds }, next, fetched)
      await this.#copyStopped({ ...work, signal: bounds }, next, fetched)
    })
    signal.throwIfAborted()
    await db.transaction(async tx => {
      // One that was given up meanwhile has its old server back, which takes rows: they would be in no volume that serves.
      if (!(await upgrades.move({ ...upgrade, error: null }, { phase: 'switched' }, tx)))
        throw new TakenOver()
      await store.update(
        row.id,
        {
          version: upgrade.to_version,
          image,
          image_reference: fetched.reference,
          image_name: fetched.name,
          volume,
          container_id: null
        },
        tx
      )
    })
  }

  /** Everything, from a server that nobody else reaches. */
  async #copyStopped(work: Work, next: DatabaseRow, fetched: PreparedImage): Promise<void> {
    const { row, runtime, side, say, signal } = work
    const { store, clock } = this.parts
    // While the old one serves: nobody waits for an empty server to be made.
    const target = await this.#openNext(work, next, fetched)
    await say('stopping the old server: nothing is written from now on')
    await store.update(row.id, { stop_asked_at: clock.now() })
    await runtime.stop(row.container_id ?? '', stopGraceSeconds)
    const source = await side.open(
      row,
      { role: 'source', imageName: row.image_name ?? '', volume: row.volume, isEmpty: false },
      signal
    )
    await say('copying everything into the new server')
    await side.copy(source, target, { kind: 'all' }, signal)
    await say('comparing what both have')
    assertSame(await side.count(source, signal), await side.count(target, signal))
    await side.close(row, 'next')
    await side.close(row, 'source')
  }

  /** Everything, of the server that serves, into one beside it: what cannot be restored is known before anything is touched. */
  async #trial(work: Work, next: DatabaseRow, image: PreparedImage): Promise<void> {
    const { row, side, runtime, volume, say, signal } = work
    await say('trying a restore of everything beside the running server')
    const serving = { containerId: row.container_id ?? '', row }
    const trial = await this.#openNext(work, next, image)
    await side.copy(serving, trial, { kind: 'all' }, signal)
    const [present, copied] = [await side.count(serving, signal), await side.count(trial, signal)]
    const lost = [...present.keys()].filter(name => !copied.has(name))
    if (lost.length > 0) throw new Error(`the trial has lost ${lost.join(', ')}`)
    const rows = [...copied.values()].reduce((sum, count) => sum + count, 0)
    await say(`the trial has restored ${copied.size} databases with ${rows} rows`)
    // As it is to serve: with what is in its volume, and the settings of every day.
    await side.open(next, { role: 'next', imageName: image.name, volume, isEmpty: false }, signal)
    await say('the new version starts again with them')
    await side.close(row, 'next')
    await runtime.removeVolume(volume)
  }

  async #openNext({ side, runtime, volume, row, signal }: Work, next: DatabaseRow, image: PreparedImage) {
    await side.close(row, 'next')
    await runtime.removeVolume(volume)
    return await side.open(next, { role: 'next', imageName: image.name, volume, isEmpty: true }, signal)
  }

  async #checkRoom({ row, runtime, say }: Work): Promise<void> {
    const { databases, disk } = this.parts
    const [used, free] = await Promise.all([
      databases.volumeBytes(runtime, row, longMeasureMs),
      disk.get()?.read() ?? Promise.resolve(undefined)
    ])
    await say(checkRoom(used, free))
  }

  /**
   * Of the new server, which serves from here on: rows that it takes are in no other volume. So only one that does not serve is given
   * up; whatever else fails, an engine that is away or the platform's own database, is tried again by the next attempt.
   */
  async #prove(work: Work): Promise<void> {
    const { upgrade, say, signal } = work
    const { store, provisioner, board, upgrades, clock, db, log } = this.parts
    const row = await store.find(work.row.id)
    if (row === undefined) return
    const { id } = row
    await say(`starting version ${row.version} with the copied data`)
    try {
      await provisioner.provision(row, signal, [upgrade.former_image_reference])
    } catch (error) {
      signal.throwIfAborted()
      log.warn({ err: error, databaseId: id }, 'an upgraded database could not be started')
      if (!isGivenUp(error, await store.find(id))) throw error
      await this.#bringBack(work, provisioner.reasonOf(row, error))
      return
    }
    await say('it serves; the old volume is kept')
    const now = clock.now()
    await db.transaction(async tx => {
      const succeeded = { phase: 'succeeded', finished_at: now, kept_until: this.#keptUntil() } as const
      if (await upgrades.move(upgrade, succeeded, tx)) await board.end(id, 'upgrade', 'running', {}, tx)
    })
  }

  #keptUntil(): Date {
    const { clock, keepDays } = this.parts
    return new Date(clock.now().getTime() + keepDays * dayMs)
  }

  /**
   * The old one, with its image and its volume as they were. The new volume goes, unless a server has been started from it that others
   * reach: rows that it may have taken are nowhere else.
   */
  async #bringBack({ upgrade, row: { id }, runtime, side, volume, say, signal }: Work, reason: string) {
    const { store, upgrades, provisioner, board, db, events, images, clock } = this.parts
    const row = await store.find(id)
    if (row === undefined) return
    await say(`it failed: ${reason}`)
    await side.close(row, 'next')
    await side.close(row, 'source')
    await say('bringing back the old server')
    const former = {
      version: upgrade.from_version,
      volume: upgrade.former_volume,
      image: upgrade.former_image,
      image_reference: upgrade.former_image_reference,
      image_name: upgrade.former_image_name,
      // The container of the old volume, where it is there still; that of the new one has no business here.
      ...(row.volume !== upgrade.former_volume && { container_id: null })
    }
    // From here on an attempt that is cut off, or finds the engine away, is followed by another that goes on here.
    const hasServed = row.volume === volume && row.container_id !== null
    const keptVolume = hasServed ? volume : upgrade.kept_volume
    await db.transaction(async tx => {
      const givenUp = { phase: 'running', error: reason, kept_volume: keptVolume } as const
      if (!(await upgrades.move(upgrade, givenUp, tx))) throw new TakenOver()
      await store.update(id, former, tx)
    })
    const restored = { ...row, ...former }
    const isBack = await provisioner.provision(restored, signal).then(
      () => null,
      (error: unknown) => {
        signal.throwIfAborted()
        if (isPassing(error)) throw error
        return provisioner.reasonOf(restored, error)
      }
    )
    // Where the old one could not be made, that of the new one is there still, under its name.
    for (const user of await runtime.volumeUsers(volume)) {
      await runtime.stop(user, stopGraceSeconds)
      await runtime.remove(user)
    }
    if (keptVolume === null) await runtime.removeVolume(volume)
    await images.keep(id, [upgrade.former_image_reference])
    const keptUntil = keptVolume === null ? null : this.#keptUntil()
    const words = [reason]
    if (isBack !== null) words.push(`The old server does not start either: ${isBack}`)
    if (keptUntil !== null)
      words.push(
        `What the new server may have taken meanwhile is in the volume ${keptVolume}, which is kept until ${keptUntil.toISOString()}`
      )
    const error = words.join('. ')
    if (keptUntil !== null) await say(words.at(-1) ?? '')
    await db.transaction(async tx => {
      const failed = { phase: 'failed', error, finished_at: clock.now(), kept_until: keptUntil } as const
      if (!(await upgrades.move({ ...upgrade, phase: 'running', error: reason }, failed, tx))) return
      await events.emit(
        databaseFailed,
        { databaseId: id, projectId: row.project_id, database: row.name, kind: 'upgrade', reason: error },
        tx
      )
      await board.end(id, 'upgrade', isBack === null ? 'running' : 'failed', { status_detail: error }, tx)
    })
  }
}

/** Both have the same databases, with as many rows each. */
export function assertSame(before: ReadonlyMap<string, number>, after: ReadonlyMap<string, number>): void {
  const names = new Set([...before.keys(), ...after.keys()])
  const different = [...names].filter(name => (before.get(name) ?? -1) !== (after.get(name) ?? -1))
  if (different.length > 0)
    throw new Error(
      `the copy is not the same: ${different
        .slice(0, 5)
        .map(
          name =>
            `${name} has ${before.get(name) ?? 'no'} rows before and ${after.get(name) ?? 'no'} afterwards`
        )
        .join('; ')}`
    )
}
