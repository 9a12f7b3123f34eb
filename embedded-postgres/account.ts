import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { closedTo, copyBinaries, isReachable, type Binaries } from './binaries.js'

/** How PostgreSQL's programs are started so that they do not run as uid 0, which they refuse. */
export interface Account {
  readonly binaries: Binaries
  /** Who owns the data, in the eyes of this process. */
  readonly uid?: number
  readonly gid?: number
  /** Set when the programs are to be started as another user. */
  readonly spawnAs?: { readonly uid: number, readonly gid: number }
  /** Put before the program: a user namespace in which root is called nobody. */
  readonly prefix: readonly string[]
}

const namespace = ['unshare', '--user', '--map-user=65534', '--map-group=65534'] as const

/**
 * Without root: as we are. As root: as `nobody` where it can reach the data (the binaries are copied to
 * the data when it cannot reach them), otherwise, on Linux, in a user namespace.
 */
export async function chooseAccount (binaries: Binaries, directory: string): Promise<Account> {
  if (process.getuid?.() !== 0) return { binaries, prefix: [] }
  const nobody = await nobodyAccount()
  const closed = await closedTo(nobody.uid, directory)
  if (closed === undefined) {
    const reachable = await isReachable(binaries, nobody.uid) ? binaries : await copyBinaries(binaries, directory, nobody.uid, nobody.gid)
    return { binaries: reachable, ...nobody, spawnAs: nobody, prefix: [] }
  }
  if (process.platform === 'linux' && await works([...namespace, 'true'])) {
    return { binaries, uid: 0, gid: 0, prefix: namespace }
  }
  throw new Error(`PostgreSQL does not run as root, and the account nobody cannot enter ${closed}, which holds the data folder ${directory}: ` +
    `run "chmod o+x ${closed}", or set BUSBAR_DIR to another folder, or DATABASE_URL to a PostgreSQL server`)
}

async function nobodyAccount (): Promise<{ uid: number, gid: number }> {
  const accounts = await readFile('/etc/passwd', 'utf8').catch(() => '')
  const [, , uid, gid] = accounts.split('\n').find(line => line.startsWith('nobody:'))?.split(':') ?? []
  // macOS has -2 in this file; as an unsigned number it is what spawn and chown expect.
  const number = (text: string | undefined): number => Number(text ?? 65534) >>> 0
  return { uid: number(uid), gid: number(gid) }
}

export const works = async ([file, ...args]: readonly string[]): Promise<boolean> =>
  file !== undefined && await promisify(execFile)(file, args, { timeout: 10_000 }).then(() => true, () => false)
