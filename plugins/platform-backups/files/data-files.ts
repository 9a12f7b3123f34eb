import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join, posix } from 'node:path'
import type { AddPart } from '../archive/archive-writer.js'
import { isInside, type KeptFile } from '../archive/manifest.js'

/** Below BUSBAR_DIR. The database and the keys are in the archive in their own way; what is left out here is made anew. */
const kept = ['data', 'plugins'] as const
const leftOut: ReadonlyMap<string, string> = new Map([
  ['data/builds/work', 'checked-out sources'],
  ['data/builds/tools', 'caches of build programs'],
  ['data/runtime-docker/alive', 'a heartbeat'],
  ['data/proxy-caddy/logs', 'logs of requests'],
  ['data/platform-backups', 'what a run has under way']
])

/** A file of the data directory that is kept, before it is read. */
type FoundFile =
  | { readonly path: string; readonly kind: 'file'; readonly mode: number }
  | { readonly path: string; readonly kind: 'link'; readonly target: string }
  | { readonly path: string; readonly kind: 'folder'; readonly mode: number }

/** Files, folders and links below `directory`, in order; sockets and what leads out of it are not kept. */
export async function findFiles(
  directory: string
): Promise<{ readonly files: readonly FoundFile[]; readonly leftOut: readonly string[] }> {
  const files: FoundFile[] = []
  const not: string[] = []
  const visit = async (path: string): Promise<void> => {
    if (leftOut.has(path)) return
    // A restore refuses an archive with such a path.
    if (!isInside(path)) {
      not.push(`${path}, whose name has a backslash`)
      return
    }
    const found = await lstat(join(directory, path)).catch(ignoreGone)
    if (found === undefined) return
    const mode = found.mode & 0o777
    if (found.isDirectory()) {
      files.push({ path, kind: 'folder', mode })
      for (const name of await namesIn(join(directory, path))) await visit(`${path}/${name}`)
    } else if (found.isFile()) files.push({ path, kind: 'file', mode })
    else if (found.isSymbolicLink()) {
      const target = await readlink(join(directory, path)).catch(ignoreGone)
      if (target !== undefined && staysInside(path, target)) files.push({ path, kind: 'link', target })
      else not.push(`the link ${path}, which leads out of the data directory`)
    } else not.push(`${path}, which is no file`)
  }
  for (const top of kept) await visit(top)
  return { files, leftOut: not }
}

const namesIn = async (path: string): Promise<string[]> =>
  ((await readdir(path).catch(ignoreGone)) ?? []).sort()

/** A link is kept where it leads to something that is kept as well. */
export function staysInside(path: string, target: string): boolean {
  if (target.startsWith('/')) return false
  const leads = posix.normalize(posix.join(posix.dirname(path), target))
  return kept.some(top => leads === top || leads.startsWith(`${top}/`))
}

/** Puts the files into an archive, one part for each. One that goes meanwhile is left out. */
export async function addFiles(
  directory: string,
  files: readonly FoundFile[],
  add: AddPart
): Promise<KeptFile[]> {
  const added: KeptFile[] = []
  let number = 0
  for (const file of files) {
    if (file.kind !== 'file') {
      added.push(file)
      continue
    }
    number++
    const name = `files/${String(number).padStart(6, '0')}`
    const part = await add(name, createReadStream(join(directory, file.path))).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined
      throw error
    })
    if (part !== undefined) added.push({ ...file, part })
  }
  return added
}

const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined

const ignoreGone = (error: unknown): undefined => {
  const code = codeOf(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
  throw error
}
