import type { BackupWork, RestoreWork, SettleWork, StoredDump } from 'busbar/api/backups'
import { whileThereIsRoom } from 'busbar/api/builds'
import type { DatabaseRow } from '../records/database-row.js'
import { nextVolumeOf } from '../records/slug.js'
import { filesFormat } from '../servers/file-formats.js'
import { isGivenUp, removeNamed } from '../servers/provisioner.js'
import type { SideServers } from '../servers/side-servers.js'
import type { GivenUpVolumes } from './given-up-volumes.js'
import { assertFormat, isRunning, partOf, type RunKit, sumOf } from './run-kit.js'

interface RestoreParts {
  readonly kit: RunKit
  readonly givenUp: GivenUpVolumes
  readonly keepDays: number
}

const againMs = 2000
const dayMs = 86_400_000
/** Of what a server has said: with more, the record of the restore would be cut off before the volume's name. */
const mostReason = 1500

/** Of a restore that is over: its database was deleted, or put back by another process. */
class TakenOver extends Error {
  constructor() {
    super('the database was deleted, or put back, while it was restored')
  }
}

/**
 * Brings dumps back: into a volume beside the present one, which takes its place when it is proven. The row names each volume of it from
 * before it is made (`next_volume`, `former_volume`): what nothing names is somebody's, and stays.
 */
export class RestoreRunner {
  constructor(private readonly parts: RestoreParts) {}

  async restore(id: string, dump: StoredDump, work: RestoreWork): Promise<void> {
    const { kit } = this.parts
    const { board, db } = kit.parts
    // Refused before anything is begun.
    kit.tools()
    const present = await kit.readable(id)
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
          {
            restore_id: work.id,
            restore_outcome: null,
            restore_reason: null,
            next_volume: nextVolumeOf(present.slug, partOf())
          },
          tx
        )
    )
    try {
      await this.#restore(row, dump, work)
    } catch (error) {
      await this.#removeOfDeleted(row)
      throw error
    }
  }

  async #restore(row: DatabaseRow, dump: StoredDump, work: RestoreWork): Promise<void> {
    const { signal, say } = work
    const { kit } = this.parts
    const { servers, images } = kit.parts
    const { side, files } = kit.tools()
    const volume = row.next_volume ?? ''
    const { engine } = await servers.engineOf(row)
    assertFormat(engine.dump?.format ?? filesFormat(row), dump.format)
    const image = await images.again(row, { say, signal })
    const wish = { role: 'next', imageName: image.name, volume, isEmpty: true } as const
    // A server that begins takes room of those beside it, before anything is restored into it.
    await whileThereIsRoom(kit.parts, signal, async bounds => {
      if (engine.dump === null) await files.restore(row, wish, dump.content, { say, signal: bounds })
      else await this.#restoreBeside(row, wish, dump, { say, signal: bounds })
    })
    await side.close(row, 'next')
    signal.throwIfAborted()
    say('putting it in the place of the present one')
    const switched = await this.#switch(row, volume)
    // One that is cut off may serve all the same: `settle` looks.
    const error = await this.#serve(switched, { say, signal })
    if (error !== null) throw new Error(await this.#goBack(switched, error))
    await this.#keepRestored(switched, work.restored)
  }

  /** Its deletion has looked before some of it was made. */
  async #removeOfDeleted(row: DatabaseRow): Promise<void> {
    const { kit } = this.parts
    if ((await kit.parts.store.find(row.id)) !== undefined) return
    const { runtime, side } = kit.tools()
    await side.closeAll(row)
    if (row.next_volume != null) await runtime.removeVolume(row.next_volume)
  }

  /** Into a server of its own, with what is not restored of the present one. */
  async #restoreBeside(
    row: DatabaseRow,
    wish: Parameters<SideServers['open']>[1],
    dump: StoredDump,
    { signal, say }: BackupWork
  ): Promise<void> {
    const { kit } = this.parts
    const { runtime, side } = kit.tools()
    const next = await side.open(row, wish, signal)
    if (dump.databases.length > 0) {
      say('copying what is not restored beside it: nothing is written to the database meanwhile')
      await kit.stopServing(runtime, row)
      const source = await side.open(
        row,
        { role: 'source', imageName: wish.imageName, volume: row.volume, isEmpty: false },
        signal
      )
      await side.copy(source, next, { kind: 'except', names: dump.databases }, signal)
      await side.close(row, 'source')
    }
    say('restoring into a server beside the present one')
    await kit.feed(side, next, dump, signal)
    await side.claim(next, signal)
    const counted = await side.count(next, signal)
    say(`it has ${counted.size} databases with ${sumOf(counted)} rows`)
  }

  /** What was there stays until the new one serves: `#goBack` leads to it. */
  async #switch(row: DatabaseRow, volume: string): Promise<DatabaseRow> {
    const { store, clock } = this.parts.kit.parts
    const switched = await store.updateRestored(row, {
      volume,
      former_volume: row.volume,
      container_id: null,
      initialized_at: row.initialized_at ?? clock.now()
    })
    if (switched === undefined) throw new TakenOver()
    return switched
  }

  /** Why it does not, or null. Rows that it takes are in no other volume: an engine that is away for a moment is no reason to go back. */
  async #serve(row: DatabaseRow, { signal, say }: BackupWork): Promise<Error | null> {
    const { provisioner, clock, store } = this.parts.kit.parts
    for (let said = ''; ; ) {
      const present = await store.find(row.id)
      if (present === undefined) throw new TakenOver()
      try {
        await provisioner.provision(present, signal)
        return null
      } catch (error) {
        signal.throwIfAborted()
        if (isGivenUp(error, await store.find(row.id))) return error
        const reason = provisioner.reasonOf(row, error)
        if (reason !== said) say(reason)
        said = reason
        await clock.sleep(againMs, signal)
      }
    }
  }

  /** Nothing leads back from here: the record of the restore says so in the same transaction, and it is not done again. */
  async #keepRestored(row: DatabaseRow, restored: SettleWork['restored']): Promise<void> {
    const { givenUp, kit } = this.parts
    const { db, store } = kit.parts
    await db.transaction(async tx => {
      const told = restored === undefined ? ({ restore_outcome: 'restored' } as const) : { restore_id: null }
      const changes = { former_volume: null, next_volume: null, ...told }
      if ((await store.updateRestored(row, changes, tx)) === undefined) throw new TakenOver()
      if (row.former_volume !== null) await givenUp.giveUp(row.id, row.former_volume, tx)
      await restored?.(tx)
    })
  }

  /**
   * To what was there before; why, in sentences. A volume from which a server was started stays for a while, as it may have taken rows, and
   * the restore is over then: who looks for them is told.
   */
  async #goBack(row: DatabaseRow, error: unknown): Promise<string> {
    const { givenUp, keepDays, kit } = this.parts
    const { store, db, clock, provisioner, log } = kit.parts
    const reason = provisioner.reasonOf(row, error)
    log.warn({ err: error, databaseId: row.id }, 'what was restored does not serve: what was there is back')
    return await db.transaction(async tx => {
      const present = await store.find(row.id, tx)
      const former = present?.former_volume
      if (present === undefined || former == null) throw new TakenOver()
      const until = new Date(clock.now().getTime() + keepDays * dayMs)
      const words = `${reason.slice(0, mostReason).replace(/\.$/, '')}. What its server may have taken meanwhile is in the volume ${present.volume}, which is kept until ${until.toISOString()}`
      const isKept = present.container_id !== null
      const changes = {
        volume: former,
        former_volume: null,
        container_id: null,
        ...(isKept && { next_volume: null, restore_outcome: 'undone' as const, restore_reason: words })
      }
      if ((await store.updateRestored(row, changes, tx)) === undefined) throw new TakenOver()
      if (!isKept) return reason
      await givenUp.giveUp(row.id, present.volume, tx, until)
      return words
    })
  }

  async settle(id: string, work: SettleWork): Promise<void> {
    const { store } = this.parts.kit.parts
    const found = await store.find(id)
    const isAsked = work.id === undefined || found?.restore_id == null || found.restore_id === work.id
    if (found?.task === 'restore' && isAsked) await this.#putBack(found, work)
    await this.#tellOutcome(await store.find(id), work)
  }

  /** What was put back while nobody made backups is over, whoever asks for it now. */
  async #tellOutcome(row: DatabaseRow | undefined, work: SettleWork): Promise<void> {
    if (row === undefined || work.id === undefined || row.restore_id !== work.id) return
    if (row.restore_outcome === 'restored')
      await this.parts.kit.parts.db.transaction(async tx => await work.restored?.(tx))
    else if (row.restore_outcome === 'undone') work.undone?.(row.restore_reason ?? undefined)
  }

  async #putBack(found: DatabaseRow, work: SettleWork): Promise<void> {
    const { kit, givenUp } = this.parts
    const { store, board, provisioner, db, clock } = kit.parts
    const { id } = found
    const { signal } = work
    const { runtime, side } = kit.tools()
    await side.closeAll(found)
    if (found.former_volume !== null) await this.#settleSwitch(found, work)
    const row = await store.find(id)
    if (row === undefined) return
    // That of the volume which was given up is reached under its name until another one is made.
    if (row.container_id === null) await removeNamed(runtime, row, row.slug)
    const before = row.status_before ?? 'running'
    const failure = await kit.failureOf(row, signal, async () => {
      if (before === 'running' || row.container_id === null) await provisioner.provision(row, signal)
      else if (before === 'failed' && !(await isRunning(runtime, row.container_id))) throw new Error(noServer)
      if (before === 'stopped') await kit.stopServing(runtime, (await store.find(id)) ?? row)
    })
    const status = before === 'stopped' ? 'stopped' : 'running'
    const detail = [row.restore_reason, failure].filter(words => words != null).join('. ')
    await db.transaction(async tx => {
      const changes = {
        next_volume: null,
        ...(failure === null && { initialized_at: row.initialized_at ?? clock.now() }),
        ...(detail !== '' && { status_detail: detail }),
        ...(work.id === undefined && { restore_outcome: row.restore_outcome ?? 'undone' })
      }
      // Another attempt at the same restore has other volumes.
      if ((await store.updateRestored(row, {}, tx)) === undefined) throw new TakenOver()
      if (!(await board.end(id, 'restore', failure === null ? status : 'failed', changes, tx))) return
      if (row.next_volume != null) await givenUp.giveUp(id, row.next_volume, tx)
    })
  }

  /** Cut off behind the switch: what the new server was given since is in no other volume, so the old one is for where it does not serve. */
  async #settleSwitch(row: DatabaseRow, { signal, restored }: SettleWork): Promise<void> {
    const { provisioner, store } = this.parts.kit.parts
    try {
      await provisioner.provision(row, signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!isGivenUp(error, await store.find(row.id))) throw error
      await this.#goBack(row, error)
      return
    }
    await this.#keepRestored(row, restored)
  }
}

const noServer = 'its server does not run: its log says why; start it, reload it, or restore again'
