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

export type DiskVerdict = Stop | Removal

/** Of the floor, as caches: applications make room before a build of others is stopped for want of it. */
const nearShare = 1.5
/** Growth of all containers that is a smaller share of what is missing does not tell what took it: a build, or the machine. */
const tellingShare = 1 / 2
const leastGrowthBytes = 64 * 2 ** 20
/** By then caches are gone, and builds that wrote much have ended. */
const lastingMs = 30_000
/** Of the limit: with fewer names, what took so long was the machine. */
const manyShare = 1 / 4

export const isNearFloor = ({ freeBytes, floorBytes }: DiskRoom): boolean =>
  freeBytes < floorBytes * nearShare

/**
 * Each that is over the limit stops. Where the disk is nearly short because of containers, the owner gives way whose
 * containers have most; where it stays short for whatever reason, too, if that is more than the floor. Who has let it
 * come to that last does not matter: else one could fill it, wait, and have others go for the little that they write.
 */
export function decideDiskUse(
  uses: readonly DiskUse[],
  limits: DiskUseLimits,
  room: DiskRoom | undefined
): readonly DiskVerdict[] {
  const removals = room === undefined || !isNearFloor(room) ? [] : removalsFor(uses, room)
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

function removalsFor(uses: readonly DiskUse[], room: DiskRoom): readonly Removal[] {
  const { bytesPerInode: each } = room
  const weighed = uses.map(use => ({
    use,
    ownerId: use.ownerId,
    holds: each === undefined ? use.bytes : use.inodes * each,
    grew: each === undefined ? use.grownBytes : use.grownInodes * each
  }))
  const grown = weighed.reduce((sum, { grew }) => sum + grew, 0)
  const isOfContainers = grown >= Math.max(leastGrowthBytes, room.lostBytes * tellingShare)
  if (!isOfContainers && room.shortMs < lastingMs) return []
  const roomy = isOfContainers ? room.floorBytes * nearShare : room.floorBytes
  const giving = givingOwner(weighed, roomy - room.freeBytes)
  if (giving === undefined || (!isOfContainers && giving.held < room.floorBytes)) return []
  return giving.containers.map(({ use }) => ({
    kind: 'remove',
    of: each === undefined ? 'bytes' : 'inodes',
    use,
    held: giving.held / (each ?? 1),
    because: giving.because
  }))
}
