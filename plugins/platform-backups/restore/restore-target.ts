import { lstat, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { BulkConnection, Installation } from 'busbar/sdk'
import semver from 'semver'
import type { Manifest } from '../archive/manifest.js'

/** Nothing was changed, and why. */
export class RestoreError extends Error {}

/** What makes a copy of what would be the original again: nothing that it does by itself is done in the name of that. */
export interface Trial {
  /** In the transaction that brings everything back; what is off and what is changed, in sentences. Throws a `RestoreError`. */
  detach(connection: Pick<BulkConnection, 'query'>): Promise<readonly string[]>
  /** Files by which the original is known, below BUSBAR_DIR: a copy makes its own. */
  readonly ownFiles: ReadonlySet<string>
}

/** An installation that is to be restored into. The platform does not run in it. */
export interface RestoreTarget {
  /** BUSBAR_DIR. */
  readonly directory: string
  /** Below it: where files wait for their places, and the file of a restore that is under way. */
  readonly staging: string
  readonly stateFile: string
  /** Of this program. */
  readonly release: string
  connect(): Promise<BulkConnection>
  /** As it is now, to be backed up before it is replaced. */
  readonly installation: Installation
  /** What its own archives are encrypted to. */
  recipients(connection: BulkConnection): Promise<readonly string[]>
  /**
   * Ends work that was not over when the archive was made, and would replace or remove something of today, in the transaction that
   * brings it back; what that was, in sentences.
   */
  endInterruptedWork(connection: BulkConnection): Promise<readonly string[]>
  /** Of what is to be no more than a copy. */
  readonly trial: Trial
  /** Keys of the environment, which are used beside those of the archive, and win. */
  readonly environmentKeys: ReadonlyMap<string, string>
  /** The statement that keeps a platform from migrating until the transaction ends. */
  readonly migrationLock: string
  readonly now: () => Date
}

const oldestMajor = 15
const lockText = "select pg_try_advisory_lock(hashtextextended('a restore of the platform', 0)) as held"

/** Throws a `RestoreError` for whatever speaks against it. Answers the schemas of a platform that are there. */
export async function checkTarget(
  target: RestoreTarget,
  connection: BulkConnection,
  manifest: Manifest,
  request: { readonly replace: boolean; readonly withoutKeys: boolean }
): Promise<{ readonly present: readonly string[]; readonly major: number }> {
  if (semver.valid(manifest.release) !== null && semver.gt(manifest.release, target.release))
    throw new RestoreError(
      `the archive is of release ${manifest.release}, and this is ${target.release}: restore it with that release or a later one`
    )
  const [server] = await connection.query<{ major: number; held: boolean }>(
    `select current_setting('server_version_num')::int / 10000 as major, (${lockText}) as held`
  )
  if (server === undefined || server.major < oldestMajor)
    throw new RestoreError(
      `the platform needs PostgreSQL ${oldestMajor} or later, and this is ${server?.major ?? 'unknown'}`
    )
  if (!server.held) throw new RestoreError('another restore is under way in this database')
  await refuseRunning(connection)
  const present = await target.installation.schemas(connection)
  if (present.length > 0 && !request.replace)
    throw new RestoreError(
      'there is a platform with data here already. With --replace it is backed up and then replaced by the archive'
    )
  await refuseStrangers(connection, manifest, present)
  checkKeys(target, manifest, request)
  await refuseMounts(target.directory)
  return { present, major: server.major }
}

async function refuseRunning(connection: BulkConnection): Promise<void> {
  const running = await connection.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
      and (application_name in ('busbar', 'busbar session') or application_name like 'busbar plugin %')`
  )
  if (running.length > 0)
    throw new RestoreError('a platform is running on this database: stop it first, in all its processes')
}

/** Files are put into place by renames, once nothing can be undone any more. */
async function refuseMounts(directory: string): Promise<void> {
  const { dev } = await stat(directory)
  const plugins = await readdir(join(directory, 'data')).catch(() => [])
  for (const path of ['plugins', 'data', ...plugins.map(plugin => join('data', plugin))]) {
    const found = await lstat(join(directory, path)).catch(() => undefined)
    if (found !== undefined && found.dev !== dev)
      throw new RestoreError(
        `${join(directory, path)} is a file system of its own: unmount it for the restore, and put what is then there back on it`
      )
  }
}

/** A schema of that name that is no platform's is somebody else's. */
async function refuseStrangers(
  connection: BulkConnection,
  { catalog }: Manifest,
  present: readonly string[]
): Promise<void> {
  const rows = await connection.query<{ name: string }>(
    'select nspname as name from pg_namespace where nspname = any($1)',
    [catalog.schemas]
  )
  const strangers = rows.map(({ name }) => name).filter(name => !present.includes(name))
  if (strangers.length > 0)
    throw new RestoreError(
      `this database has schemas of other programs that are called as the platform's: ${strangers.join(', ')}. Give the platform a database of its own`
    )
}

function checkKeys(
  { environmentKeys, installation }: RestoreTarget,
  { keys, key_ids: ids }: Manifest,
  { withoutKeys }: { readonly withoutKeys: boolean }
): void {
  if (keys !== null || withoutKeys) return
  const here = new Set([...Object.keys(installation.keys().keys), ...environmentKeys.keys()])
  const missing = ids.filter(id => !here.has(id))
  if (missing.length > 0)
    throw new RestoreError(
      `the archive was made without a recovery key, so the keys of the installation are not in it, and they are not here: ${missing.join(', ')}. Put its keys.json into the data directory, or set ENCRYPTION_KEY or ENCRYPTION_KEYS. With --without-keys everything else is restored; secrets have to be entered again`
    )
}

/** Of a key in the environment that has the id of another one: values that were sealed with that would never open. */
export function refuseOtherKeys(
  environmentKeys: ReadonlyMap<string, string>,
  restored: Readonly<Record<string, string>>
): void {
  for (const [id, key] of environmentKeys)
    if (restored[id] !== undefined && restored[id] !== key)
      throw new RestoreError(
        `the environment gives key ${id} another value than the archive has: unset ENCRYPTION_KEY and ENCRYPTION_KEYS, or set what the installation had`
      )
}
