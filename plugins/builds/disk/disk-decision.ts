import { type HeldBy, heaviestOwners } from 'busbar/api/containers'
import type { Problem } from 'busbar/sdk'
import type { Disk } from '../admission/admission-decision.js'
import { amount } from '../admission/admission-words.js'
import { problems } from '../problems.js'

/** A build or a pull that is under way. */
export interface DiskUser {
  readonly id: string
  /** The user whose project it is in. */
  readonly ownerId: string
  readonly kind: 'build' | 'pull'
  readonly begunAt: number
  /** What was free when it began, by the path of the disk. */
  readonly freeAtBegin: ReadonlyMap<string, number>
  /** What a build is known to have written, and what a pull has at most, by what has come; undefined where nothing tells. */
  readonly writtenBytes: number | undefined
  /** What its checkout takes on the disk of BUSBAR_DIR, which is most often the same. */
  readonly workspaceBytes: number
  /** What was free when it began to write what cannot be measured: a pull, when it began to unpack; by path, as `freeAtBegin`. */
  readonly freeAtSuspicion: ReadonlyMap<string, number>
  /** Of `writtenBytes`, what the engine will copy when a step ends that runs now. */
  readonly runningStepBytes: number
  /** It may have written more than that. */
  readonly isPartial: boolean
  /** What a look at each of its files has found, while the disk was nearly short. */
  readonly files: FileUse
  /** All of them were looked at. */
  readonly isCounted: boolean
  /** It makes so many files that what it writes cannot be measured. */
  readonly isUncountable: boolean
  /** It was cancelled, and gives back what it has taken. */
  readonly isEnding: boolean
}

interface FileUse {
  readonly bytes: number
  readonly inodes: number
  /** Its part of what its build engine holds after what is unused was removed, whichever build has written that. */
  readonly heldBytes: number
}

export const noFiles: FileUse = { bytes: 0, inodes: 0, heldBytes: 0 }

export interface DiskLimits {
  readonly floorBytes: number
  /** What one build may write. */
  readonly buildBytes: number
  /** What the steps of failed builds of an application may keep. */
  readonly failedBytes: number
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

/** What will be free on each when the engine has copied the steps that run: no cancel stops that once a step has ended. */
export function afterCopies(
  disks: readonly Disk[],
  users: ReadonlyArray<Pick<DiskUser, 'runningStepBytes' | 'isEnding'>>
): readonly Disk[] {
  const bytes = users.reduce(
    (sum, { runningStepBytes, isEnding }) => sum + (isEnding ? 0 : runningStepBytes),
    0
  )
  return disks.map(disk => (disk.isEngines ? { ...disk, freeBytes: disk.freeBytes - bytes } : disk))
}

export const isShort = (disks: readonly Disk[], { floorBytes }: Pick<DiskLimits, 'floorBytes'>): boolean =>
  disks.some(({ freeBytes }) => freeBytes < floorBytes)

/** Which has to end: each that has passed a limit of its own, and where a disk is short the one that has taken most of it. */
export function decideDisk(
  users: readonly DiskUser[],
  disks: readonly Disk[],
  limits: DiskLimits
): Verdict | undefined {
  const running = users.filter(({ isEnding }) => !isEnding)
  const overLimit = running.find(
    ({ kind, writtenBytes }) =>
      kind === 'build' && writtenBytes !== undefined && writtenBytes > limits.buildBytes
  )
  if (overLimit !== undefined)
    return {
      id: overLimit.id,
      problem: problems.buildTooLarge({
        written: amount(overLimit.writtenBytes ?? 0),
        limit: amount(limits.buildBytes)
      })
    }

  const uncountable = running.find(({ isUncountable }) => isUncountable)
  if (uncountable !== undefined) return { id: uncountable.id, problem: problems.buildUncountable() }

  const rooms = afterCopies(disks, users)
  const index = rooms.findIndex(({ freeBytes }) => freeBytes < limits.floorBytes)
  const [room, short] = [rooms[index], disks[index]]
  if (room === undefined || short === undefined) return undefined
  // One after another: what a cancelled one gives back may be enough. It takes a while, so there is a second floor, unless it
  // has taken all that is missing: then no other one has to follow it.
  const back = users.reduce((sum, user) => sum + (user.isEnding ? taken(user, short) : 0), 0)
  const isEnough = back >= limits.floorBytes - room.freeBytes
  if (running.length < users.length && (isEnough || room.freeBytes >= limits.floorBytes / 2)) return undefined
  const taker = heaviest(running, users, short)
  return taker === undefined ? undefined : { id: taker.id, problem: diskProblem(taker, short, room, limits) }
}

/**
 * Of the owner whose builds and pulls have taken most, all together, the one that has. To begin first, to wait, and to
 * split work gains nothing, and who has taken little never ends before who has taken much.
 */
function heaviest(
  running: readonly DiskUser[],
  users: readonly DiskUser[],
  disk: Disk
): DiskUser | undefined {
  const latest = weighed(running, users, disk).sort((a, b) => b.user.begunAt - a.user.begunAt)
  const [most] = heaviestOwners(latest, weightOf)
  return [...(most?.held ?? [])].sort((a, b) => weightOf([b]) - weightOf([a]))[0]?.user
}

const weighed = (running: readonly DiskUser[], users: readonly DiskUser[], disk: Disk): Weighed[] =>
  running.map(user => ({
    user,
    ownerId: user.ownerId,
    known: Math.max(taken(user, disk), heldOn(user, disk)) + copyOf(user, disk),
    hidden: isSuspect(user, users) ? unexplained(user, users, disk) : 0
  }))

/**
 * Whether the same one has taken most, whichever of the others has taken what nothing accounts for: then there is nothing to
 * wait for.
 */
export function isCertain(
  users: readonly DiskUser[],
  disks: readonly Disk[],
  { floorBytes }: Pick<DiskLimits, 'floorBytes'>
): boolean {
  const short = disks.find(({ freeBytes }) => freeBytes < floorBytes)
  if (short === undefined) return true
  const running = users.filter(({ isEnding }) => !isEnding)
  const ranked = heaviestOwners(weighed(running, users, short), knownOf)
    .flatMap(({ held, weight: all }) => held.map(one => ({ ...one, all })))
    .sort((a, b) => b.all - a.all || b.known - a.known)
  const [first, ...others] = ranked
  return others.every(
    ({ user, known, hidden, all }) =>
      first !== undefined &&
      (user.ownerId === first.user.ownerId ? first.known >= known + hidden : first.all >= all + hidden)
  )
}

interface Weighed extends HeldBy {
  readonly user: DiskUser
  readonly known: number
  /** What nothing accounts for: of all that may have taken it, the same. */
  readonly hidden: number
}

const knownOf = (all: readonly Weighed[]): number => all.reduce((sum, { known }) => sum + known, 0)

const weightOf = (all: readonly Weighed[]): number =>
  knownOf(all) + Math.max(...all.map(({ hidden }) => hidden))

/**
 * Whether it can have written what is not accounted for: a pull that unpacks a layer, which the engine does not show
 * before it is done; and a build whose files could not all be counted, as its step may hold some without a name. What
 * the engine copies for a step that has ended is counted while that runs. One of which nothing is known yet is suspected only
 * where there is no such build.
 */
const isSuspect = (user: DiskUser, users: readonly DiskUser[]): boolean =>
  user.isPartial &&
  (user.kind === 'build'
    ? !user.isCounted
    : user.writtenBytes !== undefined || !users.some(other => other.kind === 'build' && other.isPartial))

/** What is missing from the disk since then. */
const lost = (freeThen: ReadonlyMap<string, number>, { path, freeBytes }: Disk): number =>
  Math.max(0, (freeThen.get(path) ?? freeBytes) - freeBytes)

/** What it is known to have on a disk, by the account that tells most. */
export const taken = (user: Omit<DiskUser, 'isEnding'>, disk: Disk): number => {
  const written = writtenOnEngine(user, disk) + user.workspaceBytes
  return user.kind === 'pull' ? Math.min(written, lost(user.freeAtBegin, disk)) : written
}

/** A step that does nothing keeps what its engine has from being removed. */
const heldOn = ({ files, workspaceBytes }: DiskUser, { isEngines }: Disk): number =>
  isEngines ? files.heldBytes + workspaceBytes : 0

/** Where inodes end first, each counts as the share of the disk that it is. */
const writtenOnEngine = (
  { writtenBytes = 0, files }: Pick<DiskUser, 'writtenBytes' | 'files'>,
  disk: Disk
): number =>
  disk.isEngines
    ? Math.max(writtenBytes, files.bytes, endsByInodes(disk) ? files.inodes * (disk.bytesPerInode ?? 0) : 0)
    : writtenBytes

const endsByInodes = ({ freeBytes, freeInodes, bytesPerInode }: Disk): boolean =>
  freeInodes !== undefined &&
  bytesPerInode !== undefined &&
  freeInodes * bytesPerInode <= freeBytes + bytesPerInode

/** What stays of one that has ended: an image, or steps of a build that failed, of which the next one begins. */
export const leftBy = (
  user: Omit<DiskUser, 'isEnding'>,
  disk: Disk,
  { isMade, failedBytes }: { readonly isMade: boolean; readonly failedBytes: number }
): number => Math.min(user.writtenBytes ?? 0, lost(user.freeAtBegin, disk), isMade ? Infinity : failedBytes)

const copyOf = ({ runningStepBytes }: DiskUser, { isEngines }: Disk): number =>
  isEngines ? runningStepBytes : 0

const unexplained = (user: DiskUser, users: readonly DiskUser[], disk: Disk): number =>
  Math.max(0, lost(user.freeAtSuspicion, disk) - users.reduce((sum, other) => sum + taken(other, disk), 0))

function diskProblem(
  { kind, writtenBytes, files }: DiskUser,
  { what, path, freeBytes }: Disk,
  room: Disk,
  { floorBytes }: DiskLimits
): Problem {
  const floor = amount(floorBytes)
  const copies =
    freeBytes < floorBytes
      ? `, less than ${floor}`
      : `, and the engine needs another ${amount(freeBytes - room.freeBytes)} to keep the steps that run, which leaves less than ${floor}`
  const values = { free: amount(freeBytes), what, path, copies }
  if (kind === 'pull') return problems.pullRanShort(values)
  return problems.buildRanShort({
    ...values,
    part: writtenPart(writtenBytes, files)
  })
}

/** What it has in files without a name, and in volumes, its author finds nowhere. */
function writtenPart(writtenBytes: number | undefined, { bytes, heldBytes }: FileUse): string {
  const held =
    heldBytes > Math.max(writtenBytes ?? 0, bytes) + leastToldBytes
      ? `; the build engine of its project holds ${amount(heldBytes)} for it`
      : ''
  if (writtenBytes === undefined && bytes === 0) return held
  const all = Math.max(writtenBytes ?? 0, bytes)
  const more = all - (writtenBytes ?? 0)
  const where =
    more > leastToldBytes ? `, of which ${amount(more)} are in volumes or in files without a name` : ''
  return `; it has written ${amount(all)} on the engine${where}${held}`
}
const leastToldBytes = 2 ** 20
