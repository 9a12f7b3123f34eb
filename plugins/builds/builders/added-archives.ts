import { join } from 'node:path'
import type { Exec } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { isNoGzip, measureTar, type Packing, packingOf, type Unpacked } from '../context/archive.js'
import { problems } from '../problems.js'
import { namedFiles } from './named-files.js'

export interface ArchiveRules {
  readonly exec: Exec
  /** How much the archives of one build may unpack to now. `tooSmall`: as it was, so that room is made where that helps. */
  readonly limit: (tooSmall?: number) => Promise<number>
}

interface AddedFrom {
  /** The build context. */
  readonly directory: string
  readonly included: ReadonlySet<string>
  /** A folder of its own. */
  readonly scratch: string
  /** What the author calls the Dockerfile. */
  readonly dockerfile: string
}

const mebibyte = 2 ** 20
const timeoutMs = 15 * 60_000

/**
 * Refuses archives that ADDs would unpack to more than a build may write. The engine unpacks them in a process of its
 * own, which neither shows how much it has written nor ends when the build is cancelled.
 */
export async function checkArchives(
  sources: readonly string[],
  from: AddedFrom,
  rules: ArchiveRules,
  context: BuildContext
): Promise<void> {
  const { paths, isCertain } = await namedFiles(sources, from)
  if (paths.length === 0) return
  const archives = paths.map((path, index) => ({
    path,
    file: join(from.directory, path),
    scratch: join(from.scratch, `archive-${index}`),
    words: { dockerfile: from.dockerfile, adds: isCertain ? 'ADDs' : 'may ADD', path }
  }))
  const limit = await rules.limit()
  const first = await firstBeyond(archives, limit, rules, context)
  if (first === undefined) return
  const roomier = await rules.limit(limit)
  const beyond = roomier > limit ? await firstBeyond(archives, roomier, rules, context) : first
  if (beyond !== undefined)
    throw problems.archiveTooLarge({ ...beyond.words, limit: Math.max(0, Math.floor(roomier / mebibyte)) })
}

/** The archive with which they unpack to more than this. */
async function firstBeyond(
  archives: readonly Archive[],
  limit: number,
  rules: ArchiveRules,
  context: BuildContext
): Promise<Archive | undefined> {
  let left = Math.max(0, limit)
  for (const archive of archives) {
    const unpacked = await measured(archive, left, rules, context)
    if (unpacked?.fault === 'sparse') throw problems.archiveSparse(archive.words)
    if (unpacked?.fault === 'unclear') throw problems.archiveUnclear(archive.words)
    left -= unpacked?.bytes ?? 0
    if (left < 0) return archive
  }
  return undefined
}

const programs: Readonly<
  Record<Exclude<Packing, 'gzip' | 'plain'>, readonly [name: string, ...options: string[]]>
> = {
  bzip2: ['bzip2'],
  xz: ['xz', '--memlimit-decompress=512MiB'],
  // A window of 512 MiB at most, where 128 MiB are usual.
  zstd: ['zstd', '--long=29']
}
const missing = 127
const endedBySigpipe = 128 + 13
/** Unpacks as far as the limit, and packs that in a way that is read here. Says how the program ended, not the others. */
const repack = `
  file=$1 most=$2 packed=$3; shift 3
  command -v "$1" >/dev/null || exit ${missing}
  exec 3>&1
  { "$@" -dc <"$file" 2>/dev/null 3>&-; echo $? >&3; } | head -c "$most" 3>&- | gzip -1 >"$packed" 3>&-`

interface Archive {
  readonly path: string
  readonly file: string
  /** Where it is packed anew. */
  readonly scratch: string
  readonly words: { readonly dockerfile: string; readonly adds: string; readonly path: string }
}

async function measured(
  { file, scratch, words }: Archive,
  left: number,
  { exec }: ArchiveRules,
  { signal }: BuildContext
): Promise<Unpacked | undefined> {
  const packing = await packingOf(file)
  if (packing === 'plain') return await measureTar(file, 'plain', { limit: left, signal })
  if (packing === 'gzip') {
    return await measureTar(file, 'gzip', { limit: left, signal }).catch(async (error: unknown) => {
      signal.throwIfAborted()
      if (!String((error as NodeJS.ErrnoException).code).startsWith('Z_')) throw error
      if (await isNoGzip(file, signal)) return undefined
      throw problems.archiveUnreadable(words)
    })
  }
  const [program, ...options] = programs[packing]
  const { exitCode, stdout, stderr, timedOut } = await exec.run(
    ['sh', '-c', repack, 'sh', file, String(left + mebibyte), scratch, program, ...options],
    { timeoutMs, signal }
  )
  if (timedOut)
    throw problems.archiveUnmeasured({
      ...words,
      reason: `it took longer than ${timeoutMs / 60_000} minutes`
    })
  if (exitCode === missing) throw problems.archiveProgram({ ...words, program })
  if (exitCode !== 0)
    throw problems.archiveUnmeasured({
      ...words,
      reason: stderr.trim().slice(0, 300) || 'packing it anew failed'
    })
  if (![0, endedBySigpipe].includes(Number(stdout.trim() || NaN))) throw problems.archiveUnreadable(words)
  return await measureTar(scratch, 'gzip', { limit: left, signal })
}
