import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { lchown, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Log } from 'busbar/sdk'
import { role, scramIterations, writeRules } from './access.js'
import type { Account } from './account.js'
import { chownTree } from './binaries.js'
import { errorCode } from './file-error.js'

const environment = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' }
const muslHint =
  'the packaged PostgreSQL does not run on this system (it needs glibc): set DATABASE_URL to a PostgreSQL server, 15 or later'

/** Makes the data folder; a crash half-way leaves nothing that looks like one. */
export async function initialise(
  account: Account,
  data: string,
  fsync: boolean,
  password: string
): Promise<void> {
  const fresh = `${data}.new-${process.pid}`
  // initdb reads the password from a file, and no argument shows it to the machine.
  const passwordFile = `${fresh}.password`
  await rm(fresh, { recursive: true, force: true })
  await rm(passwordFile, { force: true })
  await mkdir(fresh, { mode: 0o700 })
  await writeFile(passwordFile, password, { flag: 'wx', mode: 0o600 })
  if (account.uid !== undefined && account.gid !== undefined) {
    await chownTree(fresh, account.uid, account.gid)
    await lchown(passwordFile, account.uid, account.gid)
  }
  const { output, exitCode } = await run(account, [
    'initdb',
    '-D',
    fresh,
    '-U',
    role,
    '-A',
    'scram-sha-256',
    `--pwfile=${passwordFile}`,
    '-c',
    `scram_iterations=${scramIterations}`,
    '-E',
    'UTF8',
    '--no-instructions',
    // The provider's locale makes upper and lower case work; the system's, which not every system has, is not needed.
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    ...(fsync ? [] : ['--no-sync'])
  ]).finally(async () => {
    await rm(passwordFile, { force: true })
  })
  if (exitCode !== 0) {
    await rm(fresh, { recursive: true, force: true })
    throw new Error(`initdb failed with ${exitCode ?? 'a signal'}: ${output.trim()}`)
  }
  await writeRules(account, fresh)
  await rename(fresh, data).catch(async error => {
    await rm(fresh, { recursive: true, force: true })
    // Another process was faster.
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error
  })
}

async function run(
  account: Account,
  program: readonly [string, ...string[]]
): Promise<{ output: string; exitCode: number | null }> {
  const child = spawnAs(account, program, account.initPrefix, ['ignore', 'pipe', 'pipe'])
  let output = ''
  child.stdout?.on('data', chunk => {
    output += String(chunk)
  })
  child.stderr?.on('data', chunk => {
    output += String(chunk)
  })
  return await new Promise((resolve, reject) => {
    child.once('error', error => {
      reject(errorCode(error) === 'ENOENT' ? new Error(muslHint) : error)
    })
    child.once('close', exitCode => {
      resolve({ output, exitCode })
    })
  })
}

function spawnAs(
  account: Account,
  [name, ...args]: readonly [string, ...string[]],
  prefix: readonly string[],
  stdio: Array<'ignore' | 'pipe' | number>
): ChildProcess {
  const program = join(account.binaries.root, 'bin', name)
  const [file = program, ...rest] = [...prefix, program, ...args]
  // A group of its own: Ctrl-C in a terminal reaches the platform, which stops its database last.
  return spawn(file, rest, { env: environment, cwd: '/', stdio, detached: true, ...account.spawnAs })
}

export interface Postmaster {
  readonly pid: number
  /** Resolves with its last output when it has ended. */
  readonly ended: Promise<string>
}

interface PostmasterOptions {
  readonly data: string
  readonly socketDirectory: string
  readonly fsync: boolean
  readonly log: Log
  /** Ends with this process; without it, it lives on and writes to a file. */
  readonly logFile?: string
  readonly endsWithParent: boolean
}

/** How long what it has said last may be on its way. */
const lastWordsMs = 1_000

export function startPostmaster(account: Account, options: PostmasterOptions): Postmaster {
  const settings = {
    listen_addresses: '',
    unix_socket_directories: options.socketDirectory,
    unix_socket_permissions: '0700',
    // Errors of a statement go to its sender; in the server's log their details could hold secrets.
    log_min_messages: 'log',
    log_checkpoints: 'off',
    log_line_prefix: '',
    // Four times as many as by default, for 10 MiB: one who locks much leaves room for the others.
    max_locks_per_transaction: '256',
    // One statement that sorts without end does not take the disk of all.
    temp_file_limit: '4GB',
    ...(options.fsync
      ? {}
      : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', max_connections: '300' })
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const output = options.logFile === undefined ? 'pipe' : openSync(options.logFile, 'a', 0o600)
  const child = spawnAs(
    account,
    ['postgres', '-D', options.data, ...args],
    [...account.prefix, ...(options.endsWithParent ? ['setpriv', '--pdeathsig=INT', '--'] : [])],
    ['ignore', output, output]
  )
  if (typeof output === 'number') closeSync(output)
  const lastLines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', line => {
      lastLines.push(line)
      if (lastLines.length > 10) lastLines.shift()
      options.log.debug({ postgres: line }, 'PostgreSQL')
    })
  }
  const ended = new Promise<string>(resolve => {
    child.once('error', error => {
      resolve(errorCode(error) === 'ENOENT' ? muslHint : error.message)
    })
    child.once('exit', () => {
      // A program that it has started may live on, and hold its output.
      setTimeout(() => {
        child.stdout?.destroy()
        child.stderr?.destroy()
      }, lastWordsMs).unref()
    })
    child.once('close', (code, signal) => {
      resolve(lastLines.join('\n') || `it ended with ${signal ?? `code ${code}`}`)
    })
  })
  if (options.logFile !== undefined) child.unref()
  return { pid: child.pid ?? 0, ended }
}
