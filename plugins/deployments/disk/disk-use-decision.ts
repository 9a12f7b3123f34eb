import type { ContainerDiskUse } from 'busbar/api/containers'

/** What a container has written, and how much of that since the disk was last seen with room. */
export interface DiskUse extends Pick<ContainerDiskUse, 'id' | 'owner' | 'isRunning' | 'bytes'> {
  readonly grownBytes: number
  /** Of `bytes`, what is in files that have no name any more; 0 where that was not looked for. */
  readonly namelessBytes: number
  /** 0 where they were not counted, as both of these. */
  readonly inodes: number
  readonly grownInodes: number
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

export interface DiskVerdict {
  /** A stopped container keeps what it has written; what a removed one has written is gone. */
  readonly kind: 'stop' | 'remove'
  /** Which limit it has passed, or which of the two was nearly used up. */
  readonly of: 'bytes' | 'inodes'
  readonly use: DiskUse
}

/** Of the floor, as caches: applications make room before a build of others is stopped for want of it. */
const nearShare = 1.5
/** Growth of all containers that is a smaller share of what is missing does not tell what took it: a build, or the machine. */
const tellingShare = 1 / 2
const leastGrowthBytes = 64 * 2 ** 20
/** What the smallest file takes, of which the engine counts what is in it. */
const leastFileBytes = 4096
/** By then caches are gone, and builds that wrote much have ended. */
const lastingMs = 30_000

export const isNearFloor = ({ freeBytes, floorBytes }: DiskRoom): boolean =>
  freeBytes < floorBytes * nearShare

/**
 * Each that is over the limit stops. Where the disk is nearly short because of containers, the one goes that has
 * grown most, of the project whose containers have; where it stays short, the largest of the project that has most.
 * One at a time: what it gives back may be enough.
 */
export function decideDiskUse(
  uses: readonly DiskUse[],
  limits: DiskUseLimits,
  room: DiskRoom | undefined
): readonly DiskVerdict[] {
  const stops = uses.flatMap(use => {
    const of = use.isRunning ? passed(use, limits) : undefined
    return of === undefined ? [] : [{ kind: 'stop' as const, of, use }]
  })
  if (room === undefined || !isNearFloor(room)) return stops
  const { growth, size, of } = weightsFor(room)
  const grown = sumOf(uses, growth)
  if (grown >= Math.max(leastGrowthBytes, room.lostBytes * tellingShare))
    return [...stops, ...removal(heaviest(uses, growth), of)]
  if (room.shortMs < lastingMs) return stops
  const largest = heaviest(uses, size)
  return largest === undefined || largest.projectBytes < room.floorBytes
    ? stops
    : [...stops, ...removal(largest, of)]
}

function passed({ bytes, inodes }: DiskUse, limits: DiskUseLimits): 'bytes' | 'inodes' | undefined {
  if (limits.bytes > 0 && bytes > limits.bytes) return 'bytes'
  return limits.inodes > 0 && inodes > limits.inodes ? 'inodes' : undefined
}

type Weight = (use: DiskUse) => number

function weightsFor({ bytesPerInode }: DiskRoom): {
  readonly growth: Weight
  readonly size: Weight
  readonly of: DiskVerdict['of']
} {
  if (bytesPerInode !== undefined)
    return {
      growth: ({ grownInodes }) => grownInodes * bytesPerInode,
      size: ({ inodes }) => inodes * bytesPerInode,
      of: 'inodes'
    }
  return {
    growth: ({ grownBytes, grownInodes }) => grownBytes + grownInodes * leastFileBytes,
    size: ({ bytes, inodes }) => bytes + inodes * leastFileBytes,
    of: 'bytes'
  }
}

const sumOf = (uses: readonly DiskUse[], weight: Weight): number =>
  uses.reduce((sum, use) => sum + weight(use), 0)

interface Heaviest {
  readonly use: DiskUse
  readonly projectBytes: number
}

/** Projects are compared, so that many small containers of one gain nothing against a large one of another. */
function heaviest(uses: readonly DiskUse[], weight: Weight): Heaviest | undefined {
  const projects = new Map<string | undefined, Heaviest>()
  for (const use of uses) {
    const { projectId } = use.owner
    const found = projects.get(projectId) ?? { use, projectBytes: 0 }
    projects.set(projectId, {
      use: weight(use) > weight(found.use) ? use : found.use,
      projectBytes: found.projectBytes + weight(use)
    })
  }
  return [...projects.values()].sort((a, b) => b.projectBytes - a.projectBytes)[0]
}

const removal = (found: Heaviest | undefined, of: DiskVerdict['of']): readonly DiskVerdict[] =>
  found === undefined ? [] : [{ kind: 'remove', of, use: found.use }]
