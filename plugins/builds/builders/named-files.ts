import { lstat } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Wildcards } from '../context/wildcards.js'
import { canExpand } from '../dockerfile/instruction.js'

interface Context {
  readonly directory: string
  readonly included: ReadonlySet<string>
}

interface NamedFiles {
  readonly paths: readonly string[]
  /** False: these are all files of the context, of which it is not known before which ones are meant. */
  readonly isCertain: boolean
}

/** All paths are compared with so many characters of patterns, at most. */
const maxPatternLength = 256
const pathsBetweenPauses = 50

/** The files of a build context that the sources of ADDs name. */
export async function namedFiles(sources: readonly string[], context: Context): Promise<NamedFiles> {
  const { directory, included } = context
  const named = new Set<string>()
  const patterns: string[] = []
  for (const source of sources) {
    const path = posix.normalize(`/${source}`).replace(/^\/|\/$/g, '')
    // Classes of characters may hold a slash.
    if (canExpand(source) || source.includes('[')) return await allFiles(context)
    if (/[*?]/.test(path)) patterns.push(path)
    else {
      const steps = path.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'))
      const kinds = await Promise.all(steps.map(async step => await kindOf(join(directory, step))))
      if (kinds.includes('link')) return await allFiles(context)
      if (kinds.at(-1) === 'file' && included.has(path)) named.add(path)
    }
  }
  if (patterns.length === 0) return { paths: [...named], isCertain: true }
  if (patterns.join('').length > maxPatternLength) return await allFiles(context)
  const wildcards = patterns.map(pattern => new Wildcards(pattern))
  let count = 0
  for (const path of included) {
    if (++count % pathsBetweenPauses === 0) await nextTurn()
    if (!wildcards.some(pattern => pattern.match(path))) continue
    const kind = await kindOf(join(directory, path))
    if (kind === 'link') return await allFiles(context)
    if (kind === 'file') named.add(path)
  }
  return { paths: [...named], isCertain: true }
}

async function allFiles({ directory, included }: Context): Promise<NamedFiles> {
  const paths: string[] = []
  for (const path of included) if ((await kindOf(join(directory, path))) === 'file') paths.push(path)
  return { paths, isCertain: false }
}

async function kindOf(path: string): Promise<'file' | 'link' | 'other'> {
  const stats = await lstat(path).catch(() => undefined)
  return stats?.isFile() === true ? 'file' : stats?.isSymbolicLink() === true ? 'link' : 'other'
}
