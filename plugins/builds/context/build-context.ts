import { lstat, readdir } from 'node:fs/promises'
import { join, posix, relative, sep } from 'node:path'
import { Readable } from 'node:stream'
import { setImmediate as breathe } from 'node:timers/promises'
import { pack } from 'tar-fs'
import { problems } from '../problems.js'
import { IgnoreMatcher, type Trail } from './ignore-matcher.js'
import { BadPattern, type IgnorePattern, parseIgnoreFile } from './ignore-patterns.js'
import { readSource } from './source-tree.js'

const ignoreFile = '.dockerignore'

/** Where the Dockerfile that the engine gets is in the context. The engine takes it out of what COPY sees. */
export const contextDockerfile = '.busbar.Dockerfile'

/** What of a source tree is sent to the engine. */
interface BuildFiles {
  /** Paths below the directory: files, links, and the directories on the way to them. */
  readonly included: ReadonlySet<string>
  /** Names that are no text, which nothing here can write down: they are left out. */
  readonly unreadable: readonly string[]
  /** The ignore file that is sent: the engine asks it about itself and about the Dockerfile that it gets. */
  readonly ignoreText: string
}

/**
 * What the ignore file leaves. The one beside the Dockerfile (`<Dockerfile>.dockerignore`) wins over
 * `.dockerignore`.
 */
export async function chooseFiles(
  directory: string,
  dockerfile: string,
  signal: AbortSignal
): Promise<BuildFiles> {
  const own = await readSource(directory, dockerfile + ignoreFile)
  const general = await readSource(directory, ignoreFile)
  const patterns = readPatterns(
    own ?? general ?? '',
    own === undefined ? ignoreFile : dockerfile + ignoreFile
  )
  const selected = await selectEntries(directory, patterns, signal)
  const isSeen = general !== undefined && selected.included.has(ignoreFile)
  return { ...selected, ignoreText: `${isSeen ? `${general}\n` : `${ignoreFile}\n`}${contextDockerfile}\n` }
}

/**
 * The build context as a tar, made while it is read. With a `dockerfile`: the one that the engine gets beside the author's, and
 * the ignore file that hides it.
 */
export function packFiles(
  directory: string,
  { included, ignoreText }: BuildFiles,
  dockerfile?: string
): Readable {
  return packTree(
    directory,
    included,
    dockerfile === undefined ? {} : { [ignoreFile]: ignoreText, [contextDockerfile]: dockerfile }
  )
}

/**
 * A part of a tree as a tar, and files that are not in it, which take the place of what it has at their paths. On the way to them it
 * may have folders alone.
 */
export function packTree(
  directory: string,
  included: ReadonlySet<string>,
  made: Readonly<Record<string, string | Buffer>>
): Readable {
  const tar = pack(directory, {
    ignore: path => {
      const name = relative(directory, path).split(sep).join('/')
      return Object.hasOwn(made, name) || !included.has(name)
    },
    map: header => ({
      ...header,
      uid: 0,
      gid: 0,
      mode: plainMode(header.type === 'directory', header.mode ?? 0)
    }),
    finalize: false,
    finish: () => {
      for (const [name, content] of Object.entries(made)) tar.entry({ name, mode: 0o644 }, content)
      tar.finalize()
    }
  })
  return Readable.from(tar)
}

// git keeps only whether a file is executable; the rest is the umask of the platform's process.
const plainMode = (isDirectory: boolean, mode: number): number =>
  isDirectory || (mode & 0o100) !== 0 ? 0o755 : 0o644

/** Every character of every file name is compared with so many places of patterns, at most. */
const maxPlaces = 16_384

export function readPatterns(text: string, file: string): IgnorePattern[] {
  try {
    const patterns = parseIgnoreFile(text)
    const places = patterns.reduce((sum, pattern) => sum + pattern.places.length, 0)
    if (places > maxPlaces)
      throw problems.badIgnore({
        file,
        reason: `its patterns have more than ${maxPlaces} characters: write fewer, with wildcards`
      })
    return patterns
  } catch (error) {
    if (error instanceof BadPattern) throw problems.badIgnore({ file, reason: error.message })
    throw error
  }
}

const entriesBetweenPauses = 500
const stepsBetweenPauses = 100_000

export async function selectEntries(
  directory: string,
  patterns: readonly IgnorePattern[],
  signal?: AbortSignal
): Promise<Omit<BuildFiles, 'ignoreText'>> {
  const matcher = new IgnoreMatcher(patterns)
  const mayTakeInAgain = patterns.some(({ isException }) => isException)
  const included = new Set<string>()
  const unreadable: string[] = []
  let seen = 0
  let pausedAt = 0
  const pause = async (): Promise<void> => {
    if (++seen % entriesBetweenPauses !== 0 && matcher.steps - pausedAt < stepsBetweenPauses) return
    pausedAt = matcher.steps
    await breathe()
    signal?.throwIfAborted()
  }
  const include = (path: string): void => {
    for (let at = path; at !== '.' && !included.has(at); at = posix.dirname(at)) included.add(at)
  }
  const walk = async (folder: string, trail: Trail): Promise<void> => {
    for (const entry of await readdir(join(directory, folder), { withFileTypes: true })) {
      await pause()
      const path = posix.join(folder, entry.name)
      if (entry.name.includes('\uFFFD') && (await isMissing(join(directory, path)))) {
        unreadable.push(path)
        continue
      }
      const found = matcher.enter(trail, entry.name)
      if (!found.isIgnored) include(path)
      if (entry.isDirectory() && (!found.isIgnored || mayTakeInAgain)) await walk(path, found)
    }
  }
  await walk('', matcher.root)
  return { included, unreadable }
}

/** For the log of a build. */
export const unreadableNote = (paths: readonly string[]): string =>
  `${paths.length} file${paths.length === 1 ? '' : 's'} or directories are left out of the build, because their names are not UTF-8: ${paths
    .slice(0, 5)
    .map(path => JSON.stringify(path))
    .join(', ')}; rename them`

// A name that is not UTF-8 is read with a substitute in it, by which it cannot be found again.
const isMissing = async (path: string): Promise<boolean> =>
  await lstat(path).then(
    () => false,
    () => true
  )
