import type { ContainerDiskUse } from 'busbar/api/containers'

/** What a container has written, and how much of that since the disk was last seen with room. */
export interface DiskUse extends Pick<ContainerDiskUse, 'id' | 'owner' | 'isRunning' | 'bytes'> {
  readonly grownBytes: number
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
}

export interface DiskVerdict {
  /** A stopped container keeps what it has written; what a removed one has written is gone. */
  readonly kind: 'stop' | 'remove'
  readonly use: DiskUse
}

/** Of the floor, as caches: applications make room before a build of others is stopped for want of it. */
const nearShare = 1.5
/** Growth of all containers that is a smaller share of what is missing does not tell what took it: a build, or the machine. */
const tellingShare = 1 / 2
const leastGrowthBytes = 64 * 2 ** 20
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
  limitBytes: number,
  room: DiskRoom | undefined
): readonly DiskVerdict[] {
  const over = limitBytes === 0 ? [] : uses.filter(({ isRunning, bytes }) => isRunning && bytes > limitBytes)
  const stops = over.map(use => ({ kind: 'stop' as const, use }))
  if (room === undefined || !isNearFloor(room)) return stops
  const grown = sumOf(uses, growth)
  if (grown >= Math.max(leastGrowthBytes, room.lostBytes * tellingShare))
    return [...stops, ...removal(heaviest(uses, growth))]
  if (room.shortMs < lastingMs) return stops
  const largest = heaviest(uses, size)
  return largest === undefined || largest.projectBytes < room.floorBytes
    ? stops
    : [...stops, ...removal(largest)]
}

type Weight = (use: DiskUse) => number
const growth: Weight = ({ grownBytes }) => grownBytes
const size: Weight = ({ bytes }) => bytes

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

const removal = (found: Heaviest | undefined): readonly DiskVerdict[] =>
  found === undefined ? [] : [{ kind: 'remove', use: found.use }]
