import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from 'busbar/sdk'
import pg from 'pg'
import { closeAccess, prepareAccess, readPassword, role } from './access.js'
import { type Account, chooseAccount, works } from './account.js'
import { chownTree, findBinaries } from './binaries.js'
import { type Claim, claim, isAlive, isListening, lockedBy } from './owner.js'
import { initialise, type Postmaster, startPostmaster } from './process.js'

interface EmbeddedOptions {
  /** BUSBAR_DIR: the data lie in `pg18` below it. */
  readonly directory: string
  readonly log: Log
  /** False makes writes faster and a crash of the machine fatal: for tests only. */
  readonly fsync?: boolean
  /** The server outlives this process and may be used by several: for tests only. */
  readonly detached?: boolean
}

interface Embedded {
  readonly url: string
  /** Ends the server; to be called last, when the database is not used any more. */
  stop(): Promise<void>
}

const major = 18
const startTimeoutMs = 20_000
const stopTimeoutMs = 10_000
const socketName = '.s.PGSQL.5432'

/**
 * Starts the PostgreSQL that npm installed as a child of this process, on a unix socket, and keeps it
 * running until `stop`. To be called from the main thread: on Linux the server ends with the thread
 * that started it.
 */
export async function startEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const { log, fsync = true, detached = false } = options
  const directory = resolve(options.directory)
  await mkdir(directory, { recursive: true, mode: 0o711 })
  const data = join(directory, `pg${major}`)
  const claimed = await claimFolder(directory, data, detached)
  try {
    const account = await chooseAccount(await findBinaries(), directory, data)
    const secret = await readPassword(data)
    const isFresh = await prepareData(account, data, { fsync, detached, password: secret.password })
    const socketDirectory = await prepareSocket(directory, account)
    const isOpen = !isFresh && (await prepareAccess(account, data, secret))
    const server = new Server(account, {
      data,
      socketDirectory,
      password: secret.password,
      fsync,
      log,
      detached
    })
    await server.start()
    if (isOpen) {
      await closeAccess(account, data, { host: socketDirectory, ...secret }).catch(async (error: unknown) => {
        await server.stop()
        throw error
      })
    }
    if (detached) await claimed.release()
    return {
      url: server.url,
      stop: async () => {
        await server.stop()
        if (!detached) await claimed.release()
      }
    }
  } catch (error) {
    await claimed.release()
    throw error
  }
}

/** A folder belongs to one process; a server that outlives its process is started by one at a time. */
async function claimFolder(directory: string, data: string, detached: boolean): Promise<Claim> {
  for (;;) {
    const claimed = await claim(detached ? join(directory, 'starting') : `${data}.pid`)
    if (!('pid' in claimed)) return claimed
    if (!detached) throw inUse(directory, claimed.pid)
    await sleep(50)
  }
}

/** Ends a detached server, when one is running. */
export async function stopEmbedded(directory: string): Promise<void> {
  const pid = await lockedBy(join(resolve(directory), `pg${major}`))
  if (typeof pid === 'number') await end({ pid, ended: endOf(pid) })
}

const inUse = (directory: string, pid: number): Error =>
  new Error(
    `the database in ${directory} is in use by process ${pid}: stop that process first, or set BUSBAR_DIR to another folder`
  )

/** A unix socket's path has room for about a hundred bytes. */
async function prepareSocket(directory: string, account: Account): Promise<string> {
  const limit = process.platform === 'darwin' ? 103 : 107
  const beside = join(directory, `pg${major}-socket`)
  const isShort = Buffer.byteLength(join(beside, socketName)) <= limit
  // By user too: what an earlier one has left there is not this one's.
  const name = `busbar-${createHash('sha256')
    .update(`${account.uid ?? ''} ${directory}`)
    .digest('hex')
    .slice(0, 16)}`
  const path = isShort ? beside : join(tmpdir(), name)
  await mkdir(path, { recursive: true, mode: 0o700 })
  // Below the system's temporary folder another user may have made it first.
  const found = await lstat(path)
  const mine = isShort ? [found.uid] : [process.getuid?.(), account.uid]
  if (!found.isDirectory() || !mine.includes(found.uid))
    throw new Error(`${path} is not a folder of this account's own: remove it`)
  // With the lock that an earlier user's server has left there.
  if (account.uid !== undefined && account.gid !== undefined && found.uid !== account.uid)
    await chownTree(path, account.uid, account.gid)
  await chmod(path, 0o700)
  return path
}

interface DataOptions {
  readonly fsync: boolean
  readonly detached: boolean
  readonly password: string
}

/** Sees that the folder is there, of this version and of this user; true when it has been made now. */
async function prepareData(
  account: Account,
  data: string,
  { fsync, detached, password }: DataOptions
): Promise<boolean> {
  if (
    await stat(data).then(
      () => false,
      () => true
    )
  ) {
    await initialise(account, data, fsync, password)
    return true
  }
  const version = (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim()
  if (version !== String(major))
    throw new Error(`${data} holds a database of PostgreSQL ${version}, not ${major}`)
  // The folder has moved, or the server ran as another user before; one that still runs must not lose its files.
  if (account.uid !== undefined && account.gid !== undefined && (await stat(data)).uid !== account.uid) {
    if (detached) await stopEmbedded(dirname(data))
    await whenEnded(data)
    await chownTree(data, account.uid, account.gid)
  }
  return false
}

/** The server of a process that was killed may be ending still. */
async function whenEnded(data: string): Promise<void> {
  for (const end = Date.now() + startTimeoutMs; ; await sleep(50)) {
    const pid = await lockedBy(data)
    if (typeof pid !== 'number') return
    if (Date.now() > end) throw inUse(dirname(data), pid)
  }
}

interface ServerOptions {
  readonly data: string
  readonly password: string
  readonly socketDirectory: string
  readonly fsync: boolean
  readonly log: Log
  readonly detached: boolean
}

class Server {
  readonly url: string
  #postmaster: Postmaster | undefined
  #isStopping = false
  #restarting: Promise<void> = Promise.resolve()

  constructor(
    private readonly account: Account,
    private readonly options: ServerOptions
  ) {
    this.url = `postgres:///postgres?host=${encodeURIComponent(options.socketDirectory)}&user=${role}&password=${options.password}`
  }

  async start(): Promise<void> {
    const { data, socketDirectory, log, detached } = this.options
    const endsWithParent =
      !detached && process.platform === 'linux' && (await works(['setpriv', '--pdeathsig=INT', 'true']))
    const deadline = Date.now() + startTimeoutMs
    for (let attempt = 0; ; attempt++) {
      const lock = await lockedBy(data)
      const running = lock === 'recycled' ? undefined : lock
      const isAnswering = await isListening(join(socketDirectory, socketName))
      // The server of a process that was killed: on Linux it is ending, elsewhere it was not told to.
      if (running !== undefined && isAnswering && (!endsWithParent || Date.now() > deadline)) {
        if (await this.#isReady()) return this.#adopt(running)
      } else if (running === undefined && isAnswering) {
        throw new Error(
          `a PostgreSQL that is not visible from here, perhaps in another container, serves ${data}: stop it first, or set BUSBAR_DIR to another folder`
        )
      } else if (running === undefined || attempt === 0) {
        if (lock === 'recycled') await rm(join(data, 'postmaster.pid'), { force: true })
        const words = await this.#launch(endsWithParent)
        if (words === undefined) return
        if (!/lock file "[^"]*" already exists|pre-existing shared memory block/.test(words)) {
          throw new Error(`PostgreSQL did not start: ${words}`)
        }
      }
      if (Date.now() > deadline) throw inUse(data, running ?? 0)
      if (attempt === 0) log.info('waiting for the PostgreSQL of an earlier process to end')
      await sleep(100)
    }
  }

  /** Resolves when it answers, or with what it said when it ended instead. */
  async #launch(endsWithParent: boolean): Promise<string | undefined> {
    const { detached, password: _, ...options } = this.options
    const logFile = detached ? `${options.data}.log` : undefined
    const postmaster = startPostmaster(this.account, { ...options, logFile, endsWithParent })
    let words: string | undefined
    void postmaster.ended.then(text => {
      words = text
    })
    const deadline = Date.now() + startTimeoutMs
    while (words === undefined && !(await this.#isReady())) {
      if (Date.now() > deadline) {
        kill(postmaster.pid, 'SIGQUIT')
        throw new Error(`PostgreSQL did not answer within ${startTimeoutMs / 1000} seconds`)
      }
      await sleep(5)
    }
    if (words !== undefined) return words
    this.#postmaster = postmaster
    if (!detached)
      void postmaster.ended.then(text => {
        this.#restarting = this.#restart(text)
      })
    return undefined
  }

  async #restart(words: string): Promise<void> {
    const { log } = this.options
    this.#postmaster = undefined
    for (let waitMs = 100; !this.#isStopping; waitMs = Math.min(waitMs * 2, 5000)) {
      log.error({ postgres: words }, 'PostgreSQL ended unexpectedly and is started again')
      try {
        await this.start()
        return
      } catch (error) {
        log.error({ err: error }, 'PostgreSQL could not be started again')
        await sleep(waitMs)
      }
    }
  }

  #adopt(pid: number): void {
    this.#postmaster = { pid, ended: endOf(pid) }
  }

  async #isReady(): Promise<boolean> {
    const client = new pg.Client({ connectionString: this.url, connectionTimeoutMillis: 2000 })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.query('select 1')
      return true
    } catch {
      return false
    } finally {
      await client.end().catch(() => {})
    }
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#restarting
    const postmaster = this.#postmaster
    if (postmaster === undefined) return
    await end(postmaster)
  }
}

/** Resolves when a process that is not a child of this one has ended. */
async function endOf(pid: number): Promise<string> {
  while (isAlive(pid)) await sleep(50, undefined, { ref: false })
  return ''
}

/** Fast, then at once, then by force. */
async function end({ pid, ended }: Postmaster): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    kill(pid, signal)
    const late = new AbortController()
    const hasEnded = await Promise.race([
      ended.then(() => true),
      sleep(stopTimeoutMs, false, { signal: late.signal }).catch(() => false)
    ])
    late.abort()
    if (hasEnded) return
  }
}

function kill(pid: number, signal: NodeJS.Signals): void {
  if (pid > 0 && isAlive(pid)) process.kill(pid, signal)
}
