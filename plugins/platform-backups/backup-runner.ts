import { createReadStream } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type {
  BulkConnection,
  Clock,
  Database,
  Events,
  Installation,
  Instance,
  Log,
  Secrets,
  Tx
} from 'busbar/sdk'
import { RunLog, withTimeLimit } from 'busbar/sdk'
import { type S3Bucket, S3Error } from 'busbar/sdk/s3'
import { platformBackupFailed } from './api.js'
import { archiveName, readArchiveName, tagOf } from './archive/archive-name.js'
import { partialEnding } from './archive/archive-writer.js'
import { makeArchive } from './archive/make-archive.js'
import { backupFailure } from './backup-failure.js'
import type { RecoveryKeyService } from './recovery-key-service.js'
import type { RemoteService } from './remote-service.js'
import { expired, type Retention } from './retention.js'
import type { OpenRun, RunStore } from './run-store.js'

interface RunnerParts {
  readonly db: Database
  readonly store: RunStore
  readonly installation: Installation
  readonly remotes: RemoteService
  readonly keys: RecoveryKeyService
  readonly events: Events
  readonly secrets: Secrets
  readonly clock: Clock
  readonly instance: Pick<Instance, 'version'>
  readonly log: Log
  /** Where archives are. */
  readonly directory: string
  readonly retention: Retention
}

/** Held for as long as a run is at work, by the connection that reads the database: it ends with the process. */
const lockText = "select pg_try_advisory_lock(hashtextextended('platform-backups.run', 0)) as held"
const lockInTransaction =
  "select pg_try_advisory_xact_lock(hashtextextended('platform-backups.run', 0)) as held"
const keptRuns = 1_000
const logEveryMs = 2_000
const cleaningMs = 30_000

/** Makes backups, and ends those whose process has died. */
export class BackupRunner {
  constructor(private readonly parts: RunnerParts) {}

  /** The whole of a run. It never rejects for what fails in it: the record says so. Rejects when `signal` aborts, and waits again. */
  async run(id: string, signal: AbortSignal): Promise<void> {
    const { installation, store, clock, secrets, log } = this.parts
    const connection = await installation.connect()
    const cut = (): void => {
      connection.cut()
    }
    signal.addEventListener('abort', cut, { once: true })
    try {
      const [lock] = await connection.query<{ held: boolean }>(lockText)
      if (lock?.held !== true) return
      if (!(await store.take(id, clock.now()))) {
        // Another attempt has begun it, and ended with its process.
        const open = await store.open()
        if (open?.begun_at == null) return
        await this.#endDead(open)
        await this.#removePartial()
        await this.#removeParts(open)
        return
      }
      const runLog = new RunLog(clock, text => secrets.clean(text))
      const stop = clock.every(logEveryMs, async () => {
        await store.writeLog(id, runLog.text)
      })
      try {
        await this.#work(id, connection, runLog, signal)
      } catch (error) {
        if (signal.aborted) {
          runLog.say('the platform stops: the backup begins again when it has started')
          await store.putBack(id, runLog.text)
          throw error
        }
        log.error({ err: error, runId: id }, 'the backup of the platform failed')
        await this.#fail(id, backupFailure(error, this.parts.directory), runLog)
      } finally {
        stop()
      }
    } finally {
      signal.removeEventListener('abort', cut)
      await connection.close()
    }
  }

  /** Ends a run whose process has died, and takes away what that left half. */
  async endStale(): Promise<void> {
    const { db, store } = this.parts
    if ((await store.open())?.begun_at == null) return
    const dead = await db.transaction(async tx => {
      const [lock] = await db.sql<{ held: boolean }>(lockInTransaction, undefined, tx)
      if (lock?.held !== true) return undefined
      // It may have ended by itself before the lock was free, and another one been asked for.
      const open = await store.open(tx)
      if (open?.begun_at == null) return undefined
      await this.#endDead(open, tx)
      // Whoever begins has to wait for the lock: what is half is not theirs.
      await this.#removePartial(tx)
      return open
    })
    if (dead !== undefined) await this.#removeParts(dead)
  }

  async #endDead(open: OpenRun, tx?: Tx): Promise<void> {
    const { clock, secrets } = this.parts
    const runLog = new RunLog(clock, text => secrets.clean(text), open.log)
    await this.#fail(open.id, 'the platform ended while the backup was under way', runLog, { tx })
  }

  async #work(id: string, connection: BulkConnection, runLog: RunLog, signal: AbortSignal): Promise<void> {
    const { installation, store, keys, clock, instance, directory, db, log } = this.parts
    const say = (message: string): void => {
      runLog.say(message)
    }
    const at = clock.now()
    const recipients = await keys.recipients()
    const name = archiveName(at, {
      encrypted: recipients.length > 0,
      of: { installation: await store.installation(), run: id }
    })
    const file = join(directory, name)
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await this.#removePartial()
    await store.describe(id, { file: name, encrypted: recipients.length > 0 })
    const made = await makeArchive(installation, connection, {
      id,
      file,
      recipients,
      release: instance.version,
      at,
      signal,
      say
    })
    say(`the archive ${file} is written, ${made.bytes} bytes`)
    if (!made.hasKeys)
      say(
        'the archive is not encrypted, and the keys of the installation are not in it: make a recovery key. Whoever restores it needs keys.json or ENCRYPTION_KEY beside it'
      )
    const uploadFault = await this.#upload(id, { name, file, bytes: made.bytes, say, signal })
    await this.#retain(say, signal).catch((error: unknown) => {
      signal.throwIfAborted()
      say(`old archives could not be removed: ${backupFailure(error, directory)}`)
      log.warn({ err: error }, 'old platform backups could not be removed')
    })
    if (uploadFault !== null) {
      await this.#fail(id, `the archive is in ${file}, and was not uploaded: ${uploadFault}`, runLog, {
        bytes: made.bytes
      })
      return
    }
    await db.transaction(async tx => {
      await store.end(
        id,
        {
          status: 'succeeded',
          finished_at: clock.now(),
          size_bytes: made.bytes,
          error: null,
          log: runLog.text
        },
        tx
      )
    })
    await store.forget(keptRuns)
    log.info({ runId: id, file, bytes: made.bytes, tables: made.tables }, 'the platform was backed up')
  }

  /** Null where it was uploaded, or is not to be; else why it was not. */
  async #upload(
    id: string,
    {
      name,
      file,
      bytes,
      say,
      signal
    }: {
      readonly name: string
      readonly file: string
      readonly bytes: number
      readonly say: (message: string) => void
      readonly signal: AbortSignal
    }
  ): Promise<string | null> {
    const { remotes, store, directory } = this.parts
    try {
      const opened = await remotes.open()
      if (opened === undefined) return null
      const key = `${opened.prefix}${name}`
      const isOwn = (await store.open())?.remote_key === key
      if (!isOwn && (await isThere(opened.remote, key, signal)))
        throw new S3Error(`there is something under the key ${key} already, which is not written over`)
      await this.#removeLeft(opened.remote, signal)
      await store.beginUpload(id, key)
      const content = createReadStream(file, { highWaterMark: 1024 * 1024 })
      try {
        await opened.remote.put(key, content, { signal, bytes })
      } finally {
        content.destroy()
      }
      await store.uploaded(id)
      say(`it is uploaded as ${key}`)
      return null
    } catch (error) {
      signal.throwIfAborted()
      const reason = backupFailure(error, directory)
      say(`it was not uploaded: ${reason}`)
      return reason
    }
  }

  async #retain(say: (message: string) => void, signal: AbortSignal): Promise<void> {
    const { directory, remotes, retention, clock, store } = this.parts
    const installation = tagOf(await store.installation())
    const here = { installation, isFormerOwn: () => true }
    for (const name of expired(await readdir(directory), retention, clock.now(), here)) {
      await rm(join(directory, name), { force: true })
      say(`${name} has had its time and is removed`)
    }
    const opened = await remotes.open().catch(() => undefined)
    if (opened === undefined) return
    const names: string[] = []
    for await (const { key } of opened.remote.list(opened.prefix, { signal }))
      names.push(key.slice(opened.prefix.length))
    // A bucket may be that of several installations, of which former releases gave the same names.
    const keys = await store.remoteKeys()
    const there = { installation, isFormerOwn: (name: string) => keys.has(`${opened.prefix}${name}`) }
    for (const name of expired(names, retention, clock.now(), there)) {
      await opened.remote.remove(`${opened.prefix}${name}`, { signal })
      say(`${name} has had its time and is removed at the remote`)
    }
  }

  async #fail(
    id: string,
    reason: string,
    runLog: RunLog,
    { bytes = 0, tx: given }: { readonly bytes?: number; readonly tx?: Tx | undefined } = {}
  ): Promise<void> {
    const { db, store, events, clock, secrets } = this.parts
    const error = secrets.clean(reason)
    runLog.say(error)
    const ended = {
      status: 'failed',
      finished_at: clock.now(),
      size_bytes: bytes,
      error,
      log: runLog.text
    } as const
    const end = async (tx: Tx): Promise<void> => {
      if (await store.end(id, ended, tx))
        await events.emit(platformBackupFailed, { runId: id, reason: error }, tx)
    }
    if (given === undefined) await db.transaction(end)
    else await end(given)
  }

  /** Of its upload. The key is its own: that needs no lock, and may take a while. */
  async #removeParts({ remote_key: key }: OpenRun): Promise<void> {
    if (key === null) return
    try {
      const opened = await this.parts.remotes.open()
      if (opened !== undefined) await this.#removePartsOf(opened.remote, key)
    } catch (error) {
      this.#partsStay(error, key)
    }
  }

  /** Of uploads of before whose store was away when they ended. No upload is under way while a run is at work that has begun none. */
  async #removeLeft(remote: S3Bucket, signal: AbortSignal): Promise<void> {
    for (const key of await this.parts.store.leftUploads())
      try {
        await this.#removePartsOf(remote, key, signal)
      } catch (error) {
        signal.throwIfAborted()
        this.#partsStay(error, key)
        // The others would be waited for in vain.
        return
      }
  }

  async #removePartsOf(remote: S3Bucket, key: string, signal?: AbortSignal): Promise<void> {
    await withTimeLimit(
      { ms: cleaningMs, signal },
      async limited => await remote.removeParts(key, { signal: limited })
    )
    await this.parts.store.partsGone(key)
  }

  #partsStay(error: unknown, key: string): void {
    this.parts.log.warn({ err: error, key }, 'what an upload left half could not be removed at the remote')
  }

  /** What was being written when a process ended. One run is at work at a time. */
  async #removePartial(tx?: Tx): Promise<void> {
    const { directory, store } = this.parts
    const own = tagOf(await store.installation(tx))
    const isOthers = (name: string): boolean => {
      const of = readArchiveName(name.slice(0, -partialEnding.length))?.installation ?? null
      return of !== null && of !== own
    }
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
    // What somebody else keeps there under such a name is left alone, and what another installation writes there.
    const isLeft = (name: string): boolean => name.endsWith(partialEnding) && !isOthers(name)
    for (const entry of entries.filter(one => one.isFile() && isLeft(one.name)))
      await rm(join(directory, entry.name), { force: true })
  }
}

/** A store that does not say so now may take archives all the same: some keys are for writing alone. */
async function isThere(remote: S3Bucket, key: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await remote.size(key, { signal })) !== null
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof S3Error) return false
    throw error
  }
}
