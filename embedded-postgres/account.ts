import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type Binaries, closedTo, copyBinaries, isReachable } from './binaries.js'

/** How PostgreSQL's programs are started so that they do not run as uid 0, which they refuse. */
export interface Account {
  readonly binaries: Binaries
  /** Who owns the data, in the eyes of this process. */
  readonly uid?: number
  readonly gid?: number
  /** Set when the programs are to be started as another user. */
  readonly spawnAs?: Ids
  /** Put before the program: a user namespace in which root is called nobody. */
  readonly prefix: readonly string[]
  /** The same for initdb, which refuses to run as a user without a name. */
  readonly initPrefix: readonly string[]
}

interface Ids {
  readonly uid: number
  readonly gid: number
}

const namespace = ['unshare', '--user', '--map-user=65534', '--map-group=65534'] as const
/** Left unused by every convention that systemd knows of (systemd.io/UIDS-GIDS). */
const ownRange = { first: 60_578, last: 61_183 } as const
const accountName = 'busbar-postgres'

/**
 * Without root: as we are. As root, on Linux: as a user of the database's own, so that no other process of the machine
 * may do anything to it; in a user namespace when that user cannot enter the folder of the data. (The binaries are
 * copied to the data when it cannot reach them.) Elsewhere as `nobody`.
 */
export async function chooseAccount(binaries: Binaries, directory: string, data: string): Promise<Account> {
  if (process.getuid?.() !== 0) return { binaries, prefix: [], initPrefix: [] }
  const { initPrefix, ...ids } =
    process.platform === 'linux' ? await ownAccount(data) : { ...(await nobodyAccount()), initPrefix: [] }
  const closed = await closedTo(ids.uid, directory)
  if (closed === undefined) {
    const reachable = (await isReachable(binaries, ids.uid))
      ? binaries
      : await copyBinaries(binaries, directory)
    return { binaries: reachable, ...ids, spawnAs: ids, prefix: [], initPrefix }
  }
  if (process.platform === 'linux' && (await works([...namespace, 'true']))) {
    return { binaries, uid: 0, gid: 0, prefix: namespace, initPrefix: namespace }
  }
  throw new Error(
    `PostgreSQL does not run as root, and its own account (uid ${ids.uid}) cannot enter ${closed}, which holds the data folder ${directory}: ` +
      `run "chmod o+x ${closed}", or set BUSBAR_DIR to another folder, or DATABASE_URL to a PostgreSQL server`
  )
}

/**
 * The user that owns the data already, when it is one of the database's own; otherwise an unused uid, which
 * needs no entry in the machine's list of users. Where initdb cannot be given a name for it, a system account is made.
 */
async function ownAccount(data: string): Promise<Ids & { readonly initPrefix: readonly string[] }> {
  const accounts = parseAccounts(await readFile('/etc/passwd', 'utf8').catch(() => ''))
  const named = accounts.find(({ name }) => name === accountName)
  const owner = await stat(data).catch(() => undefined)
  if (owner !== undefined && (isInRange(owner.uid) || owner.uid === named?.uid))
    return { uid: owner.uid, gid: owner.gid, initPrefix: [] }
  const uid = await freeUid(data, accounts)
  if (
    uid !== undefined &&
    (owner !== undefined || (await works([...namespace, 'true'], { uid, gid: uid })))
  ) {
    return { uid, gid: uid, initPrefix: namespace }
  }
  const made = named ?? (await makeAccount())
  return { uid: made.uid, gid: made.gid, initPrefix: [] }
}

const isInRange = (uid: number): boolean => uid >= ownRange.first && uid <= ownRange.last

/** The first uid after one that belongs to this folder which neither an account nor a process has. */
async function freeUid(data: string, accounts: readonly Ids[]): Promise<number | undefined> {
  if (!(await isMapped(ownRange.last))) return undefined
  const taken = new Set([...accounts.flatMap(({ uid, gid }) => [uid, gid]), ...(await uidsOfProcesses())])
  const size = ownRange.last - ownRange.first + 1
  const start = createHash('sha256').update(data).digest().readUInt32BE() % size
  const candidates = Array.from({ length: size }, (_, step) => ownRange.first + ((start + step) % size))
  return candidates.find(uid => !taken.has(uid))
}

/** In a container that has its own user namespace, not every uid exists. */
async function isMapped(uid: number): Promise<boolean> {
  const map = await readFile('/proc/self/uid_map', 'utf8').catch(() => '0 0 4294967295')
  return map
    .trim()
    .split('\n')
    .some(line => {
      const [first = 0, , count = 0] = line.trim().split(/\s+/).map(Number)
      return uid >= first && uid < first + count
    })
}

async function uidsOfProcesses(): Promise<number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter(name => /^\d+$/.test(name))
  const owners = await Promise.all(
    pids.map(
      async pid =>
        await stat(`/proc/${pid}`).then(
          ({ uid }) => [uid],
          () => []
        )
    )
  )
  return owners.flat()
}

async function makeAccount(): Promise<Ids> {
  const failure = await promisify(execFile)(
    'useradd',
    [
      '--system',
      '--user-group',
      '--no-create-home',
      '--home-dir',
      '/nonexistent',
      '--shell',
      '/usr/sbin/nologin',
      accountName
    ],
    { timeout: 10_000 }
  ).then(
    () => undefined,
    (error: Error) => error
  )
  const made = parseAccounts(await readFile('/etc/passwd', 'utf8').catch(() => '')).find(
    ({ name }) => name === accountName
  )
  if (made !== undefined) return made
  throw new Error(
    `PostgreSQL runs as an account of its own, and none could be made (${failure?.message.trim() ?? 'useradd made none'}): ` +
      `make a system account named ${accountName}, or set DATABASE_URL to a PostgreSQL server`
  )
}

function parseAccounts(passwd: string): ReadonlyArray<Ids & { readonly name: string }> {
  return passwd.split('\n').flatMap(line => {
    const [name = '', , uid, gid] = line.split(':')
    // macOS has -2 in this file; as an unsigned number it is what spawn and chown expect.
    return uid === undefined || gid === undefined
      ? []
      : [{ name, uid: Number(uid) >>> 0, gid: Number(gid) >>> 0 }]
  })
}

async function nobodyAccount(): Promise<Ids> {
  const { uid, gid } = parseAccounts(await readFile('/etc/passwd', 'utf8').catch(() => '')).find(
    ({ name }) => name === 'nobody'
  ) ?? { uid: 65_534, gid: 65_534 }
  return { uid, gid }
}

export const works = async ([file, ...args]: readonly string[], as: Partial<Ids> = {}): Promise<boolean> =>
  file !== undefined &&
  (await promisify(execFile)(file, args, { timeout: 10_000, cwd: '/', ...as }).then(
    () => true,
    () => false
  ))
