import { createWriteStream } from 'node:fs'
import { chmod, lchown, lstat, mkdir, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { syncFolder } from '../archive/archive-writer.js'
import { ArchiveError, isInside, type KeptFile } from '../archive/manifest.js'
import { staysInside } from '../files/data-files.js'

const keyFile = 'keys.json'
/** Each is exchanged as a whole; of `data` each plugin's folder is. */
const exchanged = ['plugins'] as const
/** Made of what was there before, and made again when missing. */
const madeAgain = ['bundles', 'starting'] as const

/** Folders of an archive, and then what is in them. Paths come from the archive: none leads out of `staging`. */
export async function stageFolders(staging: string, files: readonly KeptFile[]): Promise<void> {
  await mkdir(staging, { recursive: true, mode: 0o700 })
  // Also where the archive has none: what is there then goes aside.
  for (const name of exchanged) await mkdir(join(staging, name), { mode: 0o755 })
  for (const file of files) {
    if (!isInside(file.path))
      throw new ArchiveError(`the archive holds a file outside of its folder: ${file.path}`)
    if (file.kind === 'folder') await mkdir(join(staging, file.path), { recursive: true, mode: 0o700 })
  }
}

export async function stageFile(
  staging: string,
  { path, mode }: { readonly path: string; readonly mode: number },
  bytes: AsyncIterable<Buffer>
): Promise<void> {
  const target = join(staging, path)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  // Nothing that was there before, and no link, is written through.
  await pipeline(bytes, createWriteStream(target, { flags: 'wx', mode: mode & 0o777, flush: true }))
  await chmod(target, mode & 0o777)
}

/** Last of all, so that nothing is written through a link. Modes of folders too: some do not let their owner write. */
export async function stageRest(staging: string, files: readonly KeptFile[]): Promise<void> {
  for (const file of files)
    if (file.kind === 'link') {
      if (!staysInside(file.path, file.target))
        throw new ArchiveError(`the archive holds a link that leads out of its folder: ${file.path}`)
      await symlink(file.target, join(staging, file.path))
    }
  for (const file of [...files].reverse())
    if (file.kind === 'folder') await chmod(join(staging, file.path), file.mode & 0o777)
}

export async function stageKeys(staging: string, text: string): Promise<void> {
  await writeFile(join(staging, keyFile), text, { mode: 0o600, flag: 'wx', flush: true })
}

/** Gives what is staged to who has the data directory, where root restores for another user. */
export async function giveTo(
  staging: string,
  { uid, gid }: { readonly uid: number; readonly gid: number }
): Promise<void> {
  await lchown(staging, uid, gid)
  const found = await lstat(staging)
  if (!found.isDirectory()) return
  for (const name of await readdir(staging)) await giveTo(join(staging, name), { uid, gid })
}

interface Exchange {
  readonly directory: string
  readonly staging: string
  /** Where what is there goes. */
  readonly aside: string
}

/**
 * Puts what is staged into its place, and what was there aside. Each step is a rename, and what has been done is seen: it
 * may be cut off anywhere and done again.
 */
export async function exchangeFiles(exchange: Exchange): Promise<void> {
  const { directory, staging } = exchange
  if (await isThere(join(staging, keyFile))) await replace(exchange, keyFile)
  for (const name of exchanged) await replace(exchange, name)
  for (const plugin of await readdir(join(staging, 'data')).catch(() => []))
    await replace(exchange, `data/${plugin}`)
  for (const name of madeAgain) await rm(join(directory, name), { recursive: true, force: true })
  await syncFolder(directory)
}

/** What is staged no more is in its place already. */
async function replace({ directory, staging, aside }: Exchange, path: string): Promise<void> {
  const [place, fresh, old] = [join(directory, path), join(staging, path), join(aside, path)]
  if (!(await isThere(fresh))) return
  if (await isThere(place)) {
    await mkdir(dirname(old), { recursive: true, mode: 0o700 })
    await rename(place, old)
  }
  await mkdir(dirname(place), { recursive: true, mode: 0o711 })
  await rename(fresh, place)
  await syncFolder(dirname(place))
}

const isThere = async (path: string): Promise<boolean> =>
  await lstat(path).then(
    () => true,
    () => false
  )
