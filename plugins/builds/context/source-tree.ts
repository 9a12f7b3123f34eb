import { lstat, open, readdir, realpath } from 'node:fs/promises'
import { join, posix, sep } from 'node:path'
import { problems } from '../problems.js'

/** Of a Dockerfile or an ignore file: reading one must not hold up the platform. */
const maxFileBytes = 256 * 1024
const shownNames = 20

/** `./a//b/` as `a/b`, `''` for the root; refuses a path that leaves the tree. */
export function cleanPath(path: string, what: string): string {
  const normal = posix.normalize(path === '' ? '.' : path)
  const isInside = !posix.isAbsolute(normal) && normal.split('/')[0] !== '..' && !/[\u0000\\]/.test(path)
  if (!isInside) throw problems.pathEscapes({ what, path: path.slice(0, 300) })
  const clean = normal.replace(/\/$/, '')
  return clean === '.' ? '' : clean
}

/** The root directory of an application within a checked-out tree. */
export async function openRoot(tree: string, rootDirectory: string): Promise<string> {
  const path = cleanPath(rootDirectory, 'the root directory')
  const real = await locate(tree, path)
  const isDirectory = real !== undefined && (await lstat(real)).isDirectory()
  if (isDirectory) return real
  const entries = await readdir(tree, { withFileTypes: true })
  const found = entries
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
  throw problems.rootMissing({ path, found: found.slice(0, shownNames).join(', ') || 'none' })
}

/** The text of a file of the tree; undefined when there is none. */
export async function readSource(tree: string, path: string): Promise<string | undefined> {
  const real = await locate(tree, path)
  if (real === undefined) return undefined
  const file = await open(real, 'r')
  try {
    const { size, isFile } = await file.stat().then(stats => ({ size: stats.size, isFile: stats.isFile() }))
    if (!isFile) return undefined
    if (size > maxFileBytes) throw problems.fileTooLarge({ path, limit: maxFileBytes / 1024 })
    return (await file.readFile('utf8')).replace(/^\uFEFF/, '')
  } finally {
    await file.close()
  }
}

/** Follows symbolic links, but never out of the tree; undefined when nothing is there. */
async function locate(tree: string, path: string): Promise<string | undefined> {
  const root = await realpath(tree)
  try {
    const real = await realpath(join(root, path))
    if (real !== root && !real.startsWith(root + sep)) throw problems.linkEscapes({ path })
    return real
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    if (code === 'ELOOP') throw problems.linkEscapes({ path })
    throw error
  }
}

/** What a user who named a Dockerfile that is not there may have meant. */
export async function describeDockerfiles(tree: string): Promise<string> {
  const found: string[] = []
  const search = async (folder: string, depth: number): Promise<void> => {
    // A name that is not UTF-8 cannot be opened again.
    for (const entry of await readdir(join(tree, folder), { withFileTypes: true }).catch(() => [])) {
      if (found.length >= shownNames) return
      const path = posix.join(folder, entry.name)
      if (
        entry.isFile() &&
        /dockerfile|containerfile/i.test(entry.name) &&
        !entry.name.endsWith('.dockerignore')
      )
        found.push(path)
      if (entry.isDirectory() && depth > 1 && entry.name !== 'node_modules') await search(path, depth - 1)
    }
  }
  await search('', 3)
  if (found.length > 0)
    return `found were: ${found.sort().join(', ')}; set the Dockerfile path to one of them`
  const names = (await readdir(tree)).sort()
  const shown =
    names.length === 0
      ? 'the directory is empty'
      : `the directory holds ${names.slice(0, shownNames).join(', ')}${names.length > shownNames ? ', …' : ''}`
  return `${shown}: add a Dockerfile or choose another build type`
}
