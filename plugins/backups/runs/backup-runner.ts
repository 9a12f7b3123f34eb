import {
  type Clock,
  type Database,
  type Events,
  type Log,
  RunLog,
  type Secrets,
  type Tx,
  withTimeLimit
} from 'busbar/sdk'
import { type BackupSource, type BackupStorage, backupFailed, StorageError } from '../api.js'
import type { KeyRing } from '../encryption/key-ring.js'
import type { SourceRow, SourceStore } from '../sources/source-store.js'
import type { Sources } from '../sources/sources.js'
import type { BackupRow, BackupStore, NewBackup } from './backup-store.js'
import type { Deletions } from './deletions.js'
import { fileName, keyOf } from './file-name.js'
import { runFailure } from './run-failure.js'
import { withRunLimit } from './run-limit.js'
import type { Storages } from './storages.js'
import { storeDump } from './stored-file.js'

interface RunnerParts {
  readonly db: Database
  readonly events: Events
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
  readonly store: BackupStore
  readonly sourceStore: SourceStore
  readonly sources: Sources
  readonly storages: Storages
  readonly keys: KeyRing
  readonly deletions: Deletions
  readonly configs: { prefixOf(configId: string): Promise<string> }
  /** What is due meanwhile. */
  readonly waiting: { wake(sourceId: string, tx: Tx): Promise<void> }
  readonly limitMinutes: number
}

const logEveryMs = 2_000
/** For what is put back when a run has ended, however it ended. */
const settleMs = 120_000
const cleanMs = 30_000

/** Makes backups, and ends those whose process has died. */
export class BackupRunner {
  constructor(private readonly parts: RunnerParts) {}

  /** The whole of a run. It never rejects for what fails in it: the record says so. Rejects when `signal` aborts, and waits again. */
  async run(id: string, signal: AbortSignal): Promise<void> {
    const { store, sourceStore, clock, log } = this.parts
    const backup = await store.open(id)
    if (backup?.status !== 'running') return
    const source = await sourceStore.find(backup.source_id)
    if (source === undefined) return
    const runLog = this.#logOf(backup)
    if (!(await store.take(id, clock.now()))) {
      // Another attempt has begun it, and its process has died.
      await this.#settle(source)
      await this.#removeFile(backup, source)
      await this.#fail(backup, source, 'the platform ended while the backup was under way', runLog)
      return
    }
    // One that was put back: the plugin of its source may have stopped before it was settled.
    if (backup.log !== '') await this.#settle(source)
    const unwanted = new AbortController()
    const stop = clock.every(logEveryMs, async () => {
      await store.writeLog(id, runLog.text, clock.now())
      if (!(await store.isWanted(id))) unwanted.abort(new Error(`the ${source.kind} was deleted`))
    })
    try {
      await withRunLimit(
        { clock, minutes: this.parts.limitMinutes, signal, unwanted: unwanted.signal },
        async limited => await this.#work(backup, source, runLog, limited)
      )
    } catch (error) {
      await this.#settle(source)
      await this.#removeFile((await store.open(id)) ?? backup, source)
      if (signal.aborted) {
        runLog.say('the platform stops: the backup begins again when it has started')
        await store.putBack(id, runLog.text)
        throw error
      }
      if (unwanted.signal.aborted) log.info({ backupId: id }, 'a backup that nobody wants any more has ended')
      else log.error({ err: error, backupId: id }, 'a backup failed')
      await this.#fail(backup, source, runFailure(error), runLog)
    } finally {
      stop()
      await this.parts.deletions.afterUse(id)
    }
  }

  /** One that could not begin. It was never under way, so another one may be. */
  async failWithout(backup: NewBackup, source: SourceRow, reason: string, tx: Tx): Promise<void> {
    const { store, events, clock, secrets, deletions } = this.parts
    const error = secrets.clean(reason)
    const runLog = this.#logOf({ log: '' })
    runLog.say(error)
    await store.insertFailed(backup, { at: clock.now(), error, log: runLog.text }, tx)
    await events.emit(backupFailed, { ...eventOf(source), backupId: backup.id, reason: error }, tx)
    await deletions.forgetFailed(source.id, tx)
  }

  async #work(backup: BackupRow, row: SourceRow, runLog: RunLog, signal: AbortSignal): Promise<void> {
    const { sources, storages, keys, store, clock } = this.parts
    const say = (message: string): void => {
      runLog.say(message)
    }
    const source = sources.get(row.kind)
    const found = await sources.look(row.kind, row.resource_id, row.project_id)
    if (found === undefined) throw new Error(`the ${row.kind} was deleted`)
    const place = {
      destination_id: backup.destination_id,
      in_platform_store: backup.destination_id === null && (await storages.hasPlatformStore()),
      platform_place: null
    }
    const { storage, prefix, name, platformPlace } = await storages.open(row.project_id, place)
    const key = await keys.current()
    const recovery = await keys.recovery()
    const dump = await source.dump(
      row.resource_id,
      { databases: backup.databases, quiesce: backup.quiesce },
      { signal, say }
    )
    try {
      const configured = backup.config_id === null ? '' : await this.parts.configs.prefixOf(backup.config_id)
      const naming = {
        kind: row.kind,
        slug: found.slug,
        at: backup.started_at,
        isEncrypted: true,
        format: dump.format
      }
      const file = await this.#claimKey(backup, keyOf(prefix, configured), naming, {
        storage,
        signal,
        facts: { format: dump.format, keyId: key.id, inPlatformStore: place.in_platform_store, platformPlace }
      })
      say(`the dump (${dump.format}) is written to ${file} on ${name}`)
      await this.#unlessForgotten({ id: backup.id, storage, file }, async () => {
        const facts = await storeDump(
          storage,
          { key: file, dump, recipients: [key.recipient, ...recovery] },
          { signal }
        )
        say(`it is stored: ${facts.bytes} bytes, ${facts.rawBytes} before it was compressed`)
        if (recovery.length === 0)
          say(
            'it is encrypted to the key of this installation alone: make a recovery key, or it is lost with the installation'
          )
        await this.#settle(row)
        await this.#keepBlueprint(source, row)
        const stored = {
          at: clock.now(),
          log: runLog.text,
          format: dump.format,
          raw_bytes: facts.rawBytes,
          size_bytes: facts.bytes,
          sha256: facts.sha256,
          rows: facts.rows
        }
        const isKept = await this.parts.db.transaction(async tx => {
          const isEnded = await store.succeed(backup.id, stored, tx)
          if (isEnded) await this.parts.waiting.wake(row.id, tx)
          return isEnded
        })
        if (!isKept) throw new Error('the backup was given up meanwhile')
      })
    } finally {
      dump.content.destroy()
    }
    await this.parts.deletions.retain(backup).catch((error: unknown) => {
      this.parts.log.warn({ err: error, backupId: backup.id }, 'old backups could not be removed')
    })
    this.parts.log.info(
      { backupId: backup.id, kind: row.kind, resourceId: row.resource_id },
      'a backup was made'
    )
  }

  /** With its project nobody knows of a file any more, nor how its destination is opened: it goes while that is open. */
  async #unlessForgotten(
    { id, storage, file }: { readonly id: string; readonly storage: BackupStorage; readonly file: string },
    work: () => Promise<void>
  ): Promise<void> {
    try {
      await work()
    } catch (error) {
      const isKnown = (await this.parts.store.open(id)) !== undefined
      if (!isKnown)
        await withTimeLimit({ ms: cleanMs }, async signal => await storage.remove(file, { signal })).catch(
          (failure: unknown) => {
            this.parts.log.warn({ err: failure, key: file }, 'a file of a removed project is left')
          }
        )
      throw error
    }
  }

  /**
   * Names say the second; of two in one second, one says which it is as well. What is under a name already is somebody else's, of
   * another installation perhaps, and is not written over.
   */
  async #claimKey(
    backup: BackupRow,
    folder: string,
    naming: Parameters<typeof fileName>[0],
    {
      storage,
      signal,
      facts
    }: {
      readonly storage: BackupStorage
      readonly signal: AbortSignal
      readonly facts: Omit<Parameters<BackupStore['claim']>[1], 'key'>
    }
  ): Promise<string> {
    const { store } = this.parts
    for (const slug of [
      naming.slug,
      `${naming.slug}-${backup.id.slice(0, 8)}`,
      `${naming.slug}-${backup.id}`
    ]) {
      const key = keyOf(folder, fileName({ ...naming, slug }))
      const isOwn = backup.has_file && backup.key === key
      if (!isOwn && (await this.#isThere(storage, key, signal))) continue
      if (await store.claim(backup.id, { key, ...facts })) return key
    }
    throw new Error(`there are files under every name that the backup could have in ${folder}`)
  }

  /** A place that does not say so now may take files all the same: some keys are for writing alone. */
  async #isThere(storage: BackupStorage, key: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await storage.size(key, { signal })) !== null
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof StorageError) return false
      throw error
    }
  }

  async #keepBlueprint(source: BackupSource, row: SourceRow): Promise<void> {
    const { sources, sourceStore, secrets, log } = this.parts
    try {
      const blueprint = await sources.ask(row.kind, async () => await source.blueprint(row.resource_id))
      if (blueprint !== null)
        await sourceStore.keepBlueprint(row.id, secrets.seal(blueprint, blueprintPlace(row.id)))
    } catch (error) {
      log.warn({ err: error, resourceId: row.resource_id }, 'what it is made again from could not be kept')
    }
  }

  async #settle(row: SourceRow): Promise<void> {
    const { sources, log } = this.parts
    if (!sources.isThere(row.kind)) return
    await withTimeLimit(
      { ms: settleMs },
      async signal => await sources.get(row.kind).settle(row.resource_id, 'backup', { signal })
    ).catch((error: unknown) => {
      log.error(
        { err: error, resourceId: row.resource_id },
        'what a backup has changed could not be put back'
      )
    })
  }

  /** What a run has left that does not count. What cannot be removed now is by and by. */
  async #removeFile(backup: BackupRow, row: SourceRow): Promise<void> {
    const { storages, store, log } = this.parts
    const { key } = backup
    if (key === null || !backup.has_file) return
    try {
      const { storage } = await storages.open(row.project_id, backup)
      await withTimeLimit({ ms: cleanMs }, async signal => await storage.remove(key, { signal }))
      await store.fileGone(backup.id)
    } catch (error) {
      log.warn({ err: error, key }, 'what a backup has left half could not be removed')
    }
  }

  async #fail(backup: BackupRow, row: SourceRow, reason: string, runLog: RunLog): Promise<void> {
    const { db, deletions, waiting } = this.parts
    await db.transaction(async tx => {
      await this.#failIn(backup, row, reason, runLog, tx)
      await waiting.wake(row.id, tx)
    })
    await deletions.forgetFailed(row.id)
  }

  async #failIn(
    { id }: Pick<BackupRow, 'id'>,
    row: SourceRow,
    reason: string,
    runLog: RunLog,
    tx: Tx
  ): Promise<void> {
    const { store, events, clock, secrets } = this.parts
    const error = secrets.clean(reason)
    runLog.say(error)
    if (!(await store.fail(id, { at: clock.now(), error, log: runLog.text }, tx))) return
    // What it is of was removed: nobody misses it.
    if (!(await store.isWanted(id, tx))) return
    await events.emit(backupFailed, { ...eventOf(row), backupId: id, reason: error }, tx)
  }

  #logOf(backup: Pick<BackupRow, 'log'>): RunLog {
    const { clock, secrets } = this.parts
    return new RunLog(clock, text => secrets.clean(text), backup.log)
  }
}

export const blueprintPlace = (row: string) => ({ table: 'source', column: 'blueprint', row })

export const eventOf = (row: SourceRow) => ({
  projectId: row.project_id,
  resourceId: row.resource_id,
  resource: row.name,
  kind: row.kind,
  applicationId: row.application_id
})
