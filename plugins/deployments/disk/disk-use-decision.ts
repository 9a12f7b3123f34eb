import type { ContainerDiskUse } from 'busbar/api/containers'
import { type Giving, givingOwner } from './giving-owner.js'

/** What a container has written, and how much of that since the disk was last seen with room. */
export interface DiskUse extends Pick<ContainerDiskUse, 'id' | 'owner' | 'isRunning' | 'bytes'> {
  /** The user whose project it is in. */
  readonly ownerId: string
  readonly grownBytes: number
  /** Of `bytes`, what is in files that have no name any more; 0 where that was not looked for. */
  readonly namelessBytes: number
  /** 0 where they were not counted, as the two below. */
  readonly inodes: number
  readonly grownInodes: number
  /** Each hard link of a file is one. */
  readonly names: number
  /** It has more than could be looked at in the time that one container gets. */
  readonly isCut: boolean
}

/** What one container may have; 0 = no limit. */
export interface DiskUseLimits {
  readonly bytes: number
  readonly inodes: number
}

/** Of the engine's disk. */
export interface DiskRoom {
  readonly freeBytes: number
  /** With less, nothing is built or pulled. */
  readonly floorBytes: number
  /** What is missing since it was last seen with room. */
  readonly lostBytes: number
  /** How long less than the floor has been free; 0 where more is. */
  readonly shortMs: number
  /** Where inodes are what ends first: what one counts as. The bytes above are such, then. */
  readonly bytesPerInode?: number
}

interface Stop {
  /** It keeps what it has written. */
  readonly kind: 'stop'
  /** Which limit it has passed; `time`: that of counting its files. */
  readonly of: 'bytes' | 'inodes' | 'time'
  readonly use: DiskUse
}

interface Removal {
  /** What it has written is gone. */
  readonly kind: 'remove'
  /** Which of the two was nearly used up. */
  readonly of: 'bytes' | 'inodes'
  readonly use: DiskUse
  /** What the containers of its owner have: bytes, or inodes. */
  readonly held: number
  readonly because: Giving['because']
}

/** What comes back to the disk when its processes end is its own, wherever it was. Nothing that has a name is lost. */
interface Restart {
  readonly kind: 'restart'
  readonly use: DiskUse
}

export type DiskVerdict = Stop | Removal | Restart

/** Of the floor, as caches: applications make room before a build of others is stopped for want of it. */
const nearShare = 1.5
/** Growth of all containers that is a smaller share of what is missing does not tell what took it: a build, or the machine. */
const tellingShare = 1 / 2
const leastGrowthBytes = 64 * 2 ** 20
/** By then caches are gone, and builds that wrote much have ended. */
const lastingMs = 30_000
/** Of the limit: with fewer names, what took so long was the machine. */
const manyShare = 1 / 4

/** It stays short: what was looked at before has not told who has taken it. */
export const isLasting = ({ shortMs }: Pick<DiskRoom, 'shortMs'>): boolean => shortMs >= lastingMs

export const isNearFloor = ({ freeBytes, floorBytes }: DiskRoom): boolean =>
  freeBytes < floorBytes * nearShare

/**
 * Each that is over the limit stops. Where the disk is nearly short because of containers, the owner gives way whose
 * containers have most; where it stays short for whatever reason, too, if that is more than the floor. Who has let it
 * come to that last does not matter: else one could fill it, wait, and have others go for the little that they write.
 *
 * Files can be hidden from every look: by a process that is another one each moment, or among millions of descriptors. So
 * before anybody loses files for what nothing accounts for, all are restarted, one at a time. `tried`: those that were.
 */
export function decideDiskUse(
  uses: readonly DiskUse[],
  limits: DiskUseLimits,
  room: DiskRoom | undefined,
  tried: ReadonlySet<string> = new Set()
): readonly DiskVerdict[] {
  const removals = room === undefined || !isNearFloor(room) ? [] : removalsFor(uses, room, tried)
  const removed = new Set(removals.map(({ use }) => use))
  const stops = uses.flatMap(use => {
    const of = use.isRunning && !removed.has(use) ? passed(use, limits) : undefined
    return of === undefined ? [] : [{ kind: 'stop' as const, of, use }]
  })
  return [...stops, ...removals]
}

function passed({ bytes, names, isCut }: DiskUse, limits: DiskUseLimits): Stop['of'] | undefined {
  if (limits.bytes > 0 && bytes > limits.bytes) return 'bytes'
  if (limits.inodes === 0) return undefined
  if (names > limits.inodes) return 'inodes'
  return isCut && names > limits.inodes * manyShare ? 'time' : undefined
}

function removalsFor(
  uses: readonly DiskUse[],
  room: DiskRoom,
  tried: ReadonlySet<string>
): ReadonlyArray<Removal | Restart> {
  const { bytesPerInode: each } = room
  const weighed = uses.map(use => ({
    use,
    ownerId: use.ownerId,
    holds: each === undefined ? use.bytes : use.inodes * each,
    grew: each === undefined ? use.grownBytes : use.grownInodes * each
  }))
  const grown = weighed.reduce((sum, { grew }) => sum + grew, 0)
  const isOfContainers = grown >= Math.max(leastGrowthBytes, room.lostBytes * tellingShare)
  if (!isOfContainers && !isLasting(room)) return []
  const roomy = isOfContainers ? room.floorBytes * nearShare : room.floorBytes
  const giving = givingOwner(weighed, roomy - room.freeBytes)
  const isRemoval = giving !== undefined && (isOfContainers || giving.held >= room.floorBytes)
  const isHidden = room.lostBytes >= leastGrowthBytes || uses.some(({ isCut }) => isCut)
  const suspect = isOfContainers || !(isRemoval || isHidden) ? undefined : nextSuspect(uses, tried)
  if (suspect !== undefined) return [{ kind: 'restart', use: suspect }]
  if (!isRemoval) return []
  return giving.containers.map(({ use }) => ({
    kind: 'remove',
    of: each === undefined ? 'bytes' : 'inodes',
    use,
    held: giving.held / (each ?? 1),
    because: giving.because
  }))
}

/** First those that could not be looked through. */
const nextSuspect = (uses: readonly DiskUse[], tried: ReadonlySet<string>): DiskUse | undefined =>
  uses
    .filter(({ id, isRunning }) => isRunning && !tried.has(id))
    .sort((a, b) => Number(b.isCut) - Number(a.isCut) || b.namelessBytes - a.namelessBytes)[0]

/** So much came back that it was held by what was restarted: a good part of what was missing. */
export const isTelling = (
  backBytes: number,
  { freeBytes, floorBytes }: Pick<DiskRoom, 'freeBytes' | 'floorBytes'>
): boolean => backBytes >= Math.max(leastGrowthBytes, (floorBytes - freeBytes) / 4)
