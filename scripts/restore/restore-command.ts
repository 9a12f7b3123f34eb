import { parseArgs } from 'node:util'
import { readSettings, SettingError } from '../../core/config/environment.js'
import { isEncrypted } from '../../plugins/platform-backups/archive/archive-reader.js'
import { ArchiveError } from '../../plugins/platform-backups/archive/manifest.js'
import { restore, resume } from '../../plugins/platform-backups/restore/restore.js'
import { restoreFailure } from '../../plugins/platform-backups/restore/restore-failure.js'
import { RestoreError, type RestoreTarget } from '../../plugins/platform-backups/restore/restore-target.js'
import { recipientOf } from '../../sdk/age/index.js'
import { S3Error } from '../../sdk/s3/index.js'
import { openTarget } from './open-target.js'
import { type OwnArchives, ownArchives, ownArchivesHere } from './own-archives.js'
import { readRecoveryKey } from './recovery-key.js'
import { downloadArchive, listArchives } from './remote-archive.js'

const options = {
  remote: { type: 'string' },
  list: { type: 'boolean' },
  abandon: { type: 'boolean' },
  'key-file': { type: 'string' },
  replace: { type: 'boolean' },
  trial: { type: 'boolean' },
  'without-snapshot': { type: 'boolean' },
  'without-keys': { type: 'boolean' }
} as const

/** `busbar restore …`; the exit status: 0 when it is done, 1 when nothing was changed, 2 for what cannot be meant. */
export async function restoreCommand(args: readonly string[]): Promise<number> {
  const ended = endOnSignals()
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true })
    const [archive] = positionals
    if (values.list === true) {
      const here = readSettings(process.env)
      for (const line of await listArchives(here, await ownArchivesHere(here), ended)) say(line)
      return 0
    }
    const isOne = positionals.length === 1 && values.remote === undefined
    const isRemote = positionals.length === 0 && values.remote !== undefined
    if (values.abandon !== true && !isOne && !isRemote) {
      fail('name one archive, or give --remote; "busbar help" shows how')
      return 2
    }
    const settings = readSettings(process.env)
    try {
      return await run(settings, archive, values, ended)
    } catch (error) {
      throw restoreFailure(error, settings.directory)
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : ''
    if (code.startsWith('ERR_PARSE_ARGS')) {
      fail((error as Error).message)
      return 2
    }
    fail(explained(error, ended))
    return 1
  }
}

type Values = {
  readonly [K in keyof typeof options]?: (typeof options)[K]['type'] extends 'string' ? string : boolean
}

async function run(
  settings: ReturnType<typeof readSettings>,
  archive: string | undefined,
  values: Values,
  signal: AbortSignal
): Promise<number> {
  const { target, close } = await openTarget(settings)
  try {
    const isFinished = await resume(target, { mayFinish: values.abandon !== true, say })
    if (values.abandon === true) return 0
    if (isFinished) {
      say('start the platform now')
      return 0
    }
    const file =
      archive ??
      (await downloadArchive(settings, values.remote ?? '', target.staging, {
        // A trial is of somebody else's, whatever is there.
        own: values.trial === true ? undefined : await ownOf(target),
        signal,
        say
      }))
    const identity = (await isEncrypted(file))
      ? await readRecoveryKey(values['key-file'], settings.variable)
      : undefined
    if (identity !== undefined) await recipientOf(identity)
    const manifest = await restore(target, {
      file,
      identity,
      replace: values.replace === true,
      trial: values.trial === true,
      withoutSnapshot: values['without-snapshot'] === true,
      withoutKeys: values['without-keys'] === true,
      signal,
      say
    })
    const given = new Set(Object.keys(process.env))
    const missing = manifest.variables.filter(name => !given.has(name))
    if (missing.length > 0)
      say(
        `the former platform had these environment variables, which are not set here: ${missing.join(', ')}`
      )
    for (const what of manifest.left_out) say(`not in the archive: ${what}`)
    say(
      `restored as of ${manifest.created_at}. What was revoked since then is valid again: sessions, tokens, passwords, members. Applications and databases whose containers are not on this engine are shown so, and come back by a deploy`
    )
    say('start the platform now')
    return 0
  } finally {
    await close()
  }
}

async function ownOf(target: RestoreTarget): Promise<OwnArchives | undefined> {
  const connection = await target.connect()
  return await ownArchives(connection).finally(async () => await connection.close())
}

function endOnSignals(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      controller.abort(new Error(`${signal}: it was cut off`))
    })
  return controller.signal
}

function explained(error: unknown, ended: AbortSignal): string {
  if (ended.aborted) return `${String((ended.reason as Error).message)}: run it again`
  if (!(error instanceof Error)) return String(error)
  const isKnown =
    error instanceof RestoreError ||
    error instanceof ArchiveError ||
    error instanceof S3Error ||
    error instanceof SettingError
  if (isKnown || process.env.LOG_LEVEL !== 'debug') return error.message
  return error.stack ?? error.message
}

function say(message: string): void {
  process.stdout.write(`${message}\n`)
}

function fail(message: string): void {
  process.stderr.write(`not restored: ${message}\n`)
}
