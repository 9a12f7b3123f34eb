import dockerignore, { type Ignore } from '@balena/dockerignore'
import { readdir } from 'node:fs/promises'
import { join, posix, relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import { pack } from 'tar-fs'
import { setImmediate as breathe } from 'node:timers/promises'
import { problems } from './problems.js'
import { readSource } from './source-tree.js'

const ignoreFile = '.dockerignore'

/**
 * The build context as a tar: what the ignore file leaves. The one beside the Dockerfile
 * (`<Dockerfile>.dockerignore`) wins over `.dockerignore`. The Dockerfile and `.dockerignore` always go,
 * because the engine reads them; it takes them out again where they are ignored. The Dockerfile goes with
 * `dockerfileText` for its content.
 */
export async function buildContext (directory: string, dockerfile: string, dockerfileText: string): Promise<Readable> {
  const own = await readSource(directory, dockerfile + ignoreFile)
  const patterns = own ?? await readSource(directory, ignoreFile) ?? ''
  const checked = checkPatterns(patterns, own === undefined ? ignoreFile : dockerfile + ignoreFile)
  const included = await selectEntries(directory, checked, [dockerfile, ignoreFile])
  const tar = pack(directory, {
    ignore: path => {
      const name = relative(directory, path).split(sep).join('/')
      return name === dockerfile || !included.has(name)
    },
    map: header => ({ ...header, uid: 0, gid: 0, mode: plainMode(header.type === 'directory', header.mode ?? 0) }),
    finalize: false,
    finish: () => tar.entry({ name: dockerfile, mode: 0o644 }, dockerfileText, () => tar.finalize())
  })
  return Readable.from(tar)
}

// git keeps only whether a file is executable; the rest is the umask of whoever started the platform.
const plainMode = (isDirectory: boolean, mode: number): number => isDirectory || (mode & 0o100) !== 0 ? 0o755 : 0o644

const maxPatterns = 500
const maxWildcards = 4

/**
 * Patterns become regular expressions and come from whoever can push: one that takes for ever to match
 * would stop the whole platform.
 */
export function checkPatterns (patterns: string, file: string): string {
  const lines = patterns.split(/\r?\n/).map(line => line.trim()).filter(line => line !== '' && !line.startsWith('#'))
  const wild = lines.find(line => (line.match(/\*+|\[|\?/g) ?? []).length > maxWildcards)
  if (wild !== undefined) throw problems.badIgnore({ file, reason: `the pattern ${wild.slice(0, 100)} has more than ${maxWildcards} wildcards` })
  if (lines.length > maxPatterns) throw problems.badIgnore({ file, reason: `it has more than ${maxPatterns} patterns` })
  try {
    compile(lines.join('\n')).ignores('x')
  } catch (error) {
    throw problems.badIgnore({ file, reason: error instanceof Error ? error.message : String(error) })
  }
  return lines.join('\n')
}

// The library passes these on to a regular expression; in an ignore file they are ordinary characters.
const escapeSpecials = (patterns: string): string =>
  patterns.replace(/\\.|\[[^\]\n]*\]|[()+{}|^]/g, found => found.length > 1 ? found : `\\${found}`)

const compile = (patterns: string): Ignore => dockerignore.default({ ignorecase: false }).add(escapeSpecials(patterns))

const entriesBetweenPauses = 500

/** The paths below `directory` that are sent: files, links, and the directories on the way to them. */
export async function selectEntries (directory: string, patterns: string, always: readonly string[]): Promise<ReadonlySet<string>> {
  const filter = compile(patterns)
  let seen = 0
  const mayReinclude = /^\s*!/m.test(patterns)
  const included = new Set<string>()
  const include = (path: string): void => {
    for (let at = path; at !== '.' && !included.has(at); at = posix.dirname(at)) included.add(at)
  }
  const walk = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(directory, folder), { withFileTypes: true })) {
      if (++seen % entriesBetweenPauses === 0) await breathe()
      const path = posix.join(folder, entry.name)
      const isIgnored = filter.ignores(path)
      if (!isIgnored) include(path)
      if (entry.isDirectory() && (!isIgnored || mayReinclude)) await walk(path)
    }
  }
  await walk('')
  for (const path of always) include(path)
  return included
}
