import type { Problem } from 'busbar/sdk'
import type { Disk } from '../admission/admission-decision.js'
import { amount } from '../admission/admission-words.js'
import { problems } from '../problems.js'

/** A build or a pull that is under way. */
export interface DiskUser {
  readonly id: string
  readonly kind: 'build' | 'pull'
  readonly begunAt: number
  /** What was free when it began, by the path of the disk. */
  readonly freeAtBegin: ReadonlyMap<string, number>
  /** What it is known to have written; undefined where nothing measures it. */
  readonly writtenBytes: number | undefined
  /** It may have written more than that. */
  readonly isPartial: boolean
  /** It was cancelled, and gives back what it has taken. */
  readonly isEnding: boolean
}

export interface DiskLimits {
  readonly floorBytes: number
  /** What one build may write. */
  readonly buildBytes: number
}

interface Verdict {
  readonly id: string
  readonly problem: Problem
}

/** No build writes faster than this for long. */
const bytesPerSecond = 2 * 2 ** 30
export const longestLookMs = 1000
const shortestLookMs = 50

/** How long nothing has to be looked at: half of the time in which a fast writer would pass the floor. */
export function nextLookMs(disks: readonly Disk[], { floorBytes }: Pick<DiskLimits, 'floorBytes'>): number {
  const spare = Math.min(...disks.map(({ freeBytes }) => freeBytes)) - floorBytes
  return Math.min(longestLookMs, Math.max(shortestLookMs, ((spare / bytesPerSecond) * 1000) / 2))
}

export const isShort = (disks: readonly Disk[], { floorBytes }: Pick<DiskLimits, 'floorBytes'>): boolean =>
  disks.some(({ freeBytes }) => freeBytes < floorBytes)

/** Who has to end: whoever has passed a limit of its own, and where a disk is short the one that has taken most of it. */
export function decideDisk(
  users: readonly DiskUser[],
  disks: readonly Disk[],
  limits: DiskLimits
): Verdict | undefined {
  const running = users.filter(({ isEnding }) => !isEnding)
  const greedy = running.find(
    ({ writtenBytes }) => writtenBytes !== undefined && writtenBytes > limits.buildBytes
  )
  if (greedy !== undefined)
    return {
      id: greedy.id,
      problem: problems.buildTooLarge({
        written: amount(greedy.writtenBytes ?? 0),
        limit: amount(limits.buildBytes)
      })
    }

  const short = disks.find(({ freeBytes }) => freeBytes < limits.floorBytes)
  if (short === undefined) return undefined
  // One after another: what a cancelled one gives back may be enough. It takes a while, so there is a second floor.
  if (running.length < users.length && short.freeBytes >= limits.floorBytes / 2) return undefined
  const heaviest = [...running].sort(
    (a, b) => weight(b, users, short) - weight(a, users, short) || b.begunAt - a.begunAt
  )[0]
  return heaviest === undefined
    ? undefined
    : { id: heaviest.id, problem: diskProblem(heaviest, short, limits) }
}

/** What is missing from the disk and nobody is known to have written counts for those that are not measured, or not in full. */
function weight(user: DiskUser, users: readonly DiskUser[], { path, freeBytes }: Disk): number {
  const written = user.writtenBytes ?? 0
  if (!user.isPartial) return written
  const lost = (user.freeAtBegin.get(path) ?? freeBytes) - freeBytes
  const explained = users.reduce((sum, { writtenBytes = 0 }) => sum + writtenBytes, 0)
  return written + Math.max(0, lost - explained)
}

function diskProblem(
  { kind, writtenBytes }: DiskUser,
  { what, path, freeBytes }: Disk,
  { floorBytes }: DiskLimits
): Problem {
  const values = { free: amount(freeBytes), what, path, floor: amount(floorBytes) }
  if (kind === 'pull') return problems.pullRanShort(values)
  return problems.buildRanShort({
    ...values,
    part: writtenBytes === undefined ? '' : `; it has written ${amount(writtenBytes)} on the engine`
  })
}
