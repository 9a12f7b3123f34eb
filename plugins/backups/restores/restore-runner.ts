import {
  type Clock,
  type Database,
  type Events,
  type Jobs,
  type Log,
  RunLog,
  type Secrets,
  type Tx,
  withTimeLimit
} from 'busbar/sdk'
import { type BackupSource, backupRestored, type RestoreWork, restoreFailed } from '../api.js'
import { eventOf } from '../runs/backup-runner.js'
import type { BackupStore } from '../runs/backup-store.js'
import type { Deletions } from '../runs/deletions.js'
import { runFailure } from '../runs/run-failure.js'
import { withRunLimit } from '../runs/run-limit.js'
import type { OwnerQueues } from '../sources/owner-queues.js'
import type { SourceRow, SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { DumpReader } from './dump-reader.js'
import type { RestoreRow, RestoreStore } from './restore-store.js'

interface RunnerParts {
  readonly db: Database
  readonly events: Events
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly store: RestoreStore
  readonly backups: BackupStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly reader: DumpReader
  readonly jobs: Jobs
  readonly queues: OwnerQueues
  readonly deletions: Pick<Deletions, 'afterUse'>
  /** Schedules that are due meanwhile. */
  readonly waiting: { wake(sourceId: string, tx: Tx): Promise<void> }
  readonly limitMinutes: number
}

const logEveryMs = 2_000
const settleMs = 120_000
/** What could not be put back is put back later. */
const againMs = 60_000
const keptRestores = 50
/** One whose process dies begins again: half of a restore is worth less than none. But not for ever, as it may be why. */
const mostAttempts = 3
const putBack =
  'it was cut off, and was put back while backups were off: what was there before is there, with what was written since; ask for it again where it is still wanted'

/** Restores, and goes on with those whose process has died. */
export class RestoreRunner {
  constructor(private readonly parts: RunnerParts) {}

  /**
   * The whole of a restore. It never rejects for what fails in it: the record says so. Rejects when `signal` aborts, and waits again.
   * Where what it has changed cannot be put back now, it is taken up again until it can: until then it is not over.
   */
  async run(id: string, signal: AbortSignal): Promise<void> {
    const { store, sourceStore, clock, log, secrets } = this.parts
    const restore = await store.open(id)
    const row = restore === undefined ? undefined : await sourceStore.find(restore.source_id)
    if (restore?.status !== 'running' || row === undefined) return
    const runLog = new RunLog(clock, text => secrets.clean(text), restore.log)
    // Of one that was put back, the plugin of its source may have stopped before it was settled.
    const isTakenUp = restore.begun_at !== null || restore.restored_at !== null || restore.log !== ''
    if (isTakenUp && !(await this.#settleLeft(restore, row, runLog))) return
    const attempts = await store.take(id, clock.now())
    if (attempts === undefined) return
    if (attempts > mostAttempts) {
      await this.#end(restore, row, 'the platform ended each time that the restore was under way', runLog)
      return
    }
    if (restore.begun_at !== null)
      runLog.say('the platform ended while the restore was under way: it begins again')
    const unwanted = new AbortController()
    const stop = clock.every(logEveryMs, async () => {
      await store.writeLog(id, runLog.text, clock.now())
      if (!(await store.isWanted(id))) unwanted.abort(new Error(`the ${row.kind} was deleted`))
    })
    try {
      await withRunLimit(
        { clock, minutes: this.parts.limitMinutes, signal, unwanted: unwanted.signal },
        async limited => await this.#work(restore, row, runLog, limited)
      )
      await this.#settle(restore, row)
      await this.#end(restore, row, null, runLog)
    } catch (error) {
      const { left } = await this.#settle(restore, row)
      // Cut off behind the exchange, and found to work.
      if (await this.#isRestored(id)) {
        await this.#end(restore, row, null, runLog)
        return
      }
      if (signal.aborted) {
        runLog.say('the platform stops: the restore begins again when it has started')
        await store.putBack(id, runLog.text)
        throw error
      }
      log.error({ err: error, restoreId: id }, 'a restore failed')
      if (left === null) await this.#end(restore, row, runFailure(error), runLog)
      else {
        runLog.say(`${runFailure(error)}. What it has changed cannot be put back now: that is tried again`)
        await this.#endLater(restore, row, runLog, runFailure(error))
      }
    } finally {
      stop()
    }
  }

  /** Whether it is to be begun, again or for the first time; else it is over, or waits until what is left of it can be put back. */
  async #settleLeft(restore: RestoreRow, row: SourceRow, runLog: RunLog): Promise<boolean> {
    const { left, undone } = await this.#settle(restore, row)
    // It serves, and what was written to it meanwhile would be gone with another one.
    if (await this.#isRestored(restore.id)) await this.#end(restore, row, null, runLog)
    else if (undone !== null) await this.#end(restore, row, undone, runLog)
    // What is half exchanged is neither begun upon nor said to be over: it may come to its end by itself.
    else if (left !== null) await this.#endLater(restore, row, runLog, restore.error)
    else if (restore.error !== null) await this.#end(restore, row, restore.error, runLog)
    else return true
    return false
  }

  /** As often as it takes: an engine may be away for long. */
  async #endLater(restore: RestoreRow, row: SourceRow, runLog: RunLog, error: string | null): Promise<void> {
    const { db, store, jobs, queues, clock, secrets } = this.parts
    const now = clock.now()
    const waits = { error: error === null ? null : secrets.clean(error), log: runLog.text, at: now }
    await db.transaction(async tx => {
      if (!(await store.wait(restore.id, waits, tx))) return
      const queue = await queues.of('restore', row.id, tx)
      const runAt = new Date(now.getTime() + againMs)
      await jobs.enqueue(
        'restore',
        { restoreId: restore.id },
        { key: `restore/${restore.id}`, queue, runAt },
        tx
      )
    })
  }

  async #work(restore: RestoreRow, row: SourceRow, runLog: RunLog, signal: AbortSignal): Promise<void> {
    const { sources, backups, reader, store, clock } = this.parts
    const say = (message: string): void => {
      runLog.say(message)
    }
    const source = sources.get(row.kind)
    if (source.ready !== undefined) await source.ready(row.resource_id, { signal })
    const resource = await sources.look(row.kind, row.resource_id, row.project_id)
    if (resource === undefined) throw new Error(`the ${row.kind} was deleted`)
    const backup = await backups.open(restore.backup_id)
    if (backup === undefined) throw new Error('the backup is not there any more')
    if (resource.restoreRefusal !== null) throw new Error(resource.restoreRefusal)
    await this.#checkSpace(source, row, backup.raw_bytes)
    const isBeside =
      backup.format !== null &&
      source.restoresBeside?.({ format: backup.format, databases: backup.databases }) === true
    await reader.withDump(backup, row.project_id, { signal, say, isBeside }, async dump => {
      say(`it is restored into ${resource.name}`)
      await source.restore(row.resource_id, dump, { signal, say, ...this.#toldOf(restore) })
    })
    // Of a source that has not said so itself.
    await store.restored(restore.id, clock.now())
    say('it is restored')
  }

  async #checkSpace(source: BackupSource, row: SourceRow, bytes: number): Promise<void> {
    const { free } = await this.parts.sources.ask(row.kind, async () => await source.space(row.resource_id))
    if (free !== null && free < bytes)
      throw new Error(
        `there is too little room on the disk that it is restored to: the dump has ${bytes} bytes, and ${free} are free: make room on it, and try again; nothing was touched`
      )
  }

  #toldOf({ id }: RestoreRow): Pick<RestoreWork, 'id' | 'restored'> {
    const { store, clock } = this.parts
    const restored = async (tx: Tx): Promise<void> => {
      await store.restored(id, clock.now(), tx)
    }
    return { id, restored }
  }

  async #isRestored(id: string): Promise<boolean> {
    return (await this.parts.store.open(id))?.restored_at != null
  }

  /** `left`: what has failed in it, which is told. `undone`: why it is over, where the source has put it back by itself. */
  async #settle(
    restore: RestoreRow,
    row: SourceRow
  ): Promise<{ readonly left: unknown; readonly undone: string | null }> {
    const { sources, log } = this.parts
    let undone: string | null = null
    const told = {
      ...this.#toldOf(restore),
      undone: (reason: string = putBack) => {
        undone = reason
      }
    }
    try {
      await withTimeLimit(
        { ms: settleMs },
        async signal => await sources.get(row.kind).settle(row.resource_id, 'restore', { ...told, signal })
      )
      return { left: null, undone }
    } catch (error) {
      log.error(
        { err: error, resourceId: row.resource_id },
        'what a restore has changed could not be put back'
      )
      return { left: error ?? new Error('it could not be put back'), undone }
    }
  }

  async #end(restore: RestoreRow, row: SourceRow, reason: string | null, runLog: RunLog): Promise<void> {
    const { db, store, events, clock, secrets, deletions, waiting } = this.parts
    const error = reason === null ? null : secrets.clean(reason)
    if (error !== null) runLog.say(error)
    const status = error === null ? 'succeeded' : 'failed'
    await db.transaction(async tx => {
      const ended = { status, at: clock.now(), error, log: runLog.text } as const
      if (!(await store.end(restore.id, ended, tx))) return
      await waiting.wake(row.id, tx)
      const told = { ...eventOf(row), restoreId: restore.id }
      if (error === null) await events.emit(backupRestored, told, tx)
      else await events.emit(restoreFailed, { ...told, reason: error }, tx)
    })
    await store.forget(row.id, keptRestores)
    await deletions.afterUse(restore.backup_id)
  }
}
