import { randomUUID } from 'node:crypto'
import { mkdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BulkConnection, Installation } from 'busbar/sdk'
import { recipientOf } from 'busbar/sdk/age'
import { archiveName } from '../archive/archive-name.js'
import { bytesOf, proven, readParts, verifyArchive } from '../archive/archive-reader.js'
import { manifestName } from '../archive/archive-writer.js'
import { decryptBytes } from '../archive/encryption.js'
import { makeArchive } from '../archive/make-archive.js'
import type { KeptFile, Manifest } from '../archive/manifest.js'
import { createTables, dropSchemas, fillTable, finishTables } from '../database/refill.js'
import { restoreFailure } from './restore-failure.js'
import { type RestoreState, readState, removeState, writeState } from './restore-state.js'
import { checkTarget, RestoreError, type RestoreTarget, refuseOtherKeys } from './restore-target.js'
import { exchangeFiles, giveTo, stageFile, stageFolders, stageKeys, stageRest } from './staged-files.js'

interface RestoreRequest {
  readonly file: string
  /** The recovery key, where the archive is encrypted. */
  readonly identity: string | undefined
  /** What is there may be replaced, once it has been backed up. */
  readonly replace: boolean
  /** It need not be backed up before. */
  readonly withoutSnapshot: boolean
  /** It is to stand beside the original, and not to go on in its place. */
  readonly trial: boolean
  /** Without the keys that open what is sealed. */
  readonly withoutKeys: boolean
  readonly signal: AbortSignal
  readonly say: (message: string) => void
}

const commentOf = (restore: string): string => `restored by ${restore}`
const longestKeys = 1024 * 1024

/**
 * Brings everything back that an archive holds. The archive is read whole and proven before anything is touched; the
 * database changes in one transaction; files are prepared before it ends, and put into place after. Cut off anywhere,
 * it can be begun again: then it finishes what has been decided, or forgets what has not.
 */
export async function restore(target: RestoreTarget, request: RestoreRequest): Promise<Manifest> {
  const { file, identity, say, signal } = request
  say('the archive is read and checked')
  const manifest = await verifyArchive({ file, identity })
  say(
    `it is whole: release ${manifest.release}, of ${manifest.created_at}, ${manifest.tables.length} tables and ${manifest.files.length} files`
  )
  signal.throwIfAborted()
  const connection = await target.connect()
  const cut = (): void => {
    connection.cut()
  }
  signal.addEventListener('abort', cut, { once: true })
  try {
    const found = await checkTarget(target, connection, manifest, request)
    if (found.present.length > 0 && !request.withoutSnapshot) await snapshotPresent(target, request)
    const state: RestoreState = { restore: randomUUID(), aside: `before-restore-${stampOf(target.now())}` }
    await rm(target.staging, { recursive: true, force: true })
    await writeState(target.stateFile, state)
    await fill({ target, connection, manifest, request, state, present: found.present, major: found.major })
    await finish(target, state)
    say('the database and the files are as they were')
    await connection.query('analyze').catch(() => {})
    return manifest
  } finally {
    signal.removeEventListener('abort', cut)
    await connection.close()
  }
}

/** What a restore has left that was cut off. True where that has been finished now. */
export async function resume(
  target: RestoreTarget,
  { mayFinish, say }: { readonly mayFinish: boolean; readonly say: (message: string) => void }
): Promise<boolean> {
  const state = await readState(target.stateFile)
  if (state === undefined) return false
  const connection = await target.connect()
  try {
    const [row] = await connection.query<{ comment: string | null }>(
      "select obj_description(oid, 'pg_namespace') as comment from pg_namespace where nspname = 'kernel'"
    )
    const isDecided = row?.comment === commentOf(state.restore)
    if (!isDecided) {
      await forget(target)
      say('an earlier restore was cut off before it had changed anything: it is forgotten')
      return false
    }
    if (!mayFinish)
      throw new RestoreError(
        'the database has been restored already, and only files are left to be put into place: run "busbar restore" without --abandon to finish'
      )
    await finish(target, state)
    say('an earlier restore was cut off when the database was restored already: it is finished now')
    return true
  } finally {
    await connection.close()
  }
}

async function finish(target: RestoreTarget, state: RestoreState): Promise<void> {
  const { directory, staging } = target
  await exchangeFiles({ directory, staging, aside: join(directory, state.aside) })
  await rm(staging, { recursive: true, force: true })
  await removeState(target.stateFile)
}

async function forget({ staging, stateFile }: RestoreTarget): Promise<void> {
  await rm(staging, { recursive: true, force: true })
  await removeState(stateFile)
}

interface Filling {
  readonly target: RestoreTarget
  readonly connection: BulkConnection
  readonly manifest: Manifest
  readonly request: RestoreRequest
  readonly state: RestoreState
  readonly present: readonly string[]
  readonly major: number
}

async function fill(filling: Filling): Promise<void> {
  const { target, connection, manifest, request, state, present, major } = filling
  let isCommitting = false
  try {
    await connection.query('begin')
    // A platform that starts now waits here, and then finds the restore to be under way or over.
    await connection.query(target.migrationLock)
    await connection.query("set local lock_timeout = '10s'")
    await dropSchemas(connection, present)
    const missing = await createTables(connection, manifest.catalog, major)
    for (const what of missing) request.say(`this server does not have ${what}, which the former one had`)
    await fillFrom(filling)
    request.say('rows are in; keys and indexes are made')
    await finishTables(connection, manifest.catalog)
    await endOwnRun(connection, manifest, (await stat(request.file)).size)
    for (const sentence of await target.endInterruptedWork(connection)) request.say(sentence)
    if (request.trial) for (const sentence of await target.trial.detach(connection)) request.say(sentence)
    await connection.query(`comment on schema kernel is '${commentOf(state.restore)}'`)
    await giveAway(target)
    isCommitting = true
    await connection.query('commit')
  } catch (error) {
    // While it is being decided nobody knows here which way: whoever comes next asks the database.
    if (!isCommitting) {
      await connection.query('rollback').catch(() => {})
      await forget(target).catch(() => {})
    }
    throw error
  }
}

/** In the order of the archive: rows into the database, files beside their places. */
async function fillFrom({ target, connection, manifest, request }: Filling): Promise<void> {
  const { staging } = target
  const { file, identity, say, signal } = request
  const tables = new Map(manifest.catalog.tables.map(table => [`${table.schema}.${table.name}`, table]))
  const tableParts = new Map(manifest.tables.map(part => [part.name, part]))
  const isLeftOut = ({ path }: KeptFile): boolean => request.trial && target.trial.ownFiles.has(path)
  const files = manifest.files.filter(kept => !isLeftOut(kept))
  const leftOut = new Set(
    manifest.files.flatMap(kept => (kept.kind === 'file' && isLeftOut(kept) ? [kept.part.name] : []))
  )
  const fileParts = new Map(
    files.flatMap(kept => (kept.kind === 'file' ? [[kept.part.name, kept] as const] : []))
  )
  await stageFolders(staging, files)
  for await (const { name, bytes } of readParts({ file, identity })) {
    signal.throwIfAborted()
    const part = tableParts.get(name)
    const kept = fileParts.get(name)
    if (part !== undefined) {
      const table = tables.get(`${part.schema}.${part.table}`)
      if (table === undefined)
        throw new RestoreError(`the archive does not describe ${part.schema}.${part.table}`)
      if (part.bytes > 100_000_000) say(`${part.schema}.${part.table}, ${Math.round(part.bytes / 1e6)} MB`)
      await fillTable(connection, table, proven(part, bytes))
      tableParts.delete(name)
    } else if (kept !== undefined) {
      await stageFile(staging, kept, proven(kept.part, bytes))
      fileParts.delete(name)
    } else if (name === manifest.keys?.name) {
      const keys = await openKeys(await bytesOf(proven(manifest.keys, bytes), longestKeys), identity)
      refuseOtherKeys(target.environmentKeys, keys.keys)
      await stageKeys(staging, `${JSON.stringify(keys, null, 2)}\n`)
    } else if (name !== manifestName && !leftOut.has(name))
      throw new RestoreError(`the archive has changed since it was checked: ${name}`)
  }
  for (const part of tableParts.values())
    if (part.bytes > 0)
      throw new RestoreError(`the archive has changed since it was checked: ${part.name} is missing`)
  for (const kept of fileParts.values()) {
    if (kept.part.bytes > 0)
      throw new RestoreError(`the archive has changed since it was checked: ${kept.part.name} is missing`)
    await stageFile(staging, kept, nothing())
  }
  await stageRest(staging, files)
}

async function* nothing(): AsyncGenerator<Buffer> {}

async function openKeys(
  sealed: Buffer,
  identity: string | undefined
): Promise<ReturnType<Installation['keys']>> {
  if (identity === undefined) throw new RestoreError('the keys in the archive need the recovery key')
  return JSON.parse((await decryptBytes(identity, sealed)).toString('utf8'))
}

/** The run that made the archive was under way when the database was read. */
async function endOwnRun(
  connection: BulkConnection,
  { id, catalog }: Manifest,
  bytes: number
): Promise<void> {
  if (!catalog.schemas.includes('platform_backups')) return
  await connection.query(
    `update platform_backups.run set status = 'succeeded', finished_at = now(), size_bytes = $2 where id = $1 and status = 'running'`,
    [id, bytes]
  )
}

async function giveAway({ directory, staging }: RestoreTarget): Promise<void> {
  if (process.getuid?.() !== 0) return
  const owner = await stat(directory)
  if (owner.uid !== 0) await giveTo(staging, owner)
}

/** The present as it is, in an archive of its own beside the others. */
async function snapshotPresent(
  target: RestoreTarget,
  { identity, signal, say }: RestoreRequest
): Promise<void> {
  const installation: Installation = target.installation
  const own = identity === undefined ? [] : [await recipientOf(identity)]
  const connection = await target.connect()
  const folder = join(target.directory, 'backups', 'platform')
  try {
    const recipients = [...new Set([...own, ...(await target.recipients(connection))])]
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const at = target.now()
    const path = join(folder, archiveName(at, { encrypted: recipients.length > 0, kind: 'before-restore' }))
    say(`what is there is backed up to ${path}`)
    await makeArchive(installation, connection, {
      id: randomUUID(),
      file: path,
      recipients,
      release: target.release,
      at,
      signal,
      say: message => {
        say(`  ${message}`)
      }
    })
    await giveAwayFile(target, path)
  } catch (error) {
    signal.throwIfAborted()
    const reason = restoreFailure(error, folder)
    throw new RestoreError(
      `what is there could not be backed up, so nothing was changed: ${reason instanceof Error ? reason.message : String(reason)}. With --without-snapshot it is not backed up`,
      { cause: error }
    )
  } finally {
    await connection.close()
  }
}

async function giveAwayFile({ directory }: RestoreTarget, path: string): Promise<void> {
  if (process.getuid?.() !== 0) return
  const owner = await stat(directory)
  if (owner.uid !== 0) await giveTo(path, owner)
}

const stampOf = (at: Date): string => `${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`
