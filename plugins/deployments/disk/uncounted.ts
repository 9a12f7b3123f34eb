import type { EngineDisk } from 'busbar/api/builds'
import type { ContainerDiskUse } from 'busbar/api/containers'
import type { DiskRoom, DiskUseLimits } from './disk-use-decision.js'

export interface Counting {
  /** In each place of a container, counting ends there: more tells nothing more. */
  readonly most: number
}

type Bytes = Pick<ContainerDiskUse, 'bytes'>

/** Of a limit: by then one container may be near it, and it is time to count. */
const tellingShare = 1 / 4
/** Where the file system has no number of inodes, or the engine is elsewhere. */
const plainly = { inodeBytes: 4096, most: 1_000_000 }

/** What has gone from the disk that the engine's account leaves out: a count of files takes long, and is made for that only. */
export class Uncounted {
  #freeInodes: number | undefined
  /** What was free, and what containers had written: together the same for as long as nothing else is written. */
  #accounted: number | undefined

  constructor(private readonly limits: DiskUseLimits) {}

  /** So many that one container may have come near the limit since they were counted. */
  hasLostInodes(disk: EngineDisk | undefined): boolean {
    const free = disk?.inodes?.free
    if (free === undefined || this.#freeInodes === undefined || this.limits.inodes === 0) return false
    return this.#freeInodes - free >= this.limits.inodes * tellingShare
  }

  /** Whether a count could find a container that has passed a limit. */
  isMissing(disk: EngineDisk | undefined, uses: readonly Bytes[]): boolean {
    if (this.hasLostInodes(disk)) return true
    if (disk === undefined || this.#accounted === undefined || this.limits.bytes === 0) return false
    return this.#accounted - accountOf(disk, uses) >= this.limits.bytes * tellingShare
  }

  /**
   * `uses`: by the engine's account; undefined where that was not asked for. `isCounted`: the files, too. What is given back
   * by others is no longer missing.
   */
  note(disk: EngineDisk | undefined, uses: readonly Bytes[] | undefined, isCounted: boolean): void {
    if (disk === undefined) return
    const free = disk.inodes?.free
    const newer = (then: number | undefined, now: number): number =>
      isCounted || then === undefined ? now : Math.max(then, now)
    if (uses !== undefined) this.#accounted = newer(this.#accounted, accountOf(disk, uses))
    this.#freeInodes = free === undefined ? undefined : newer(this.#freeInodes, free)
  }

  countingOf(room: DiskRoom | undefined, disk: EngineDisk | undefined): Counting {
    const each = disk?.inodes?.bytesEach ?? plainly.inodeBytes
    const enough =
      room === undefined ? plainly.most : Math.ceil(Math.max(room.lostBytes, 2 * room.floorBytes) / each)
    return { most: Math.max(this.limits.inodes, enough) + 1 }
  }
}

const accountOf = ({ freeBytes }: EngineDisk, uses: readonly Bytes[]): number =>
  uses.reduce((sum, { bytes }) => sum + bytes, freeBytes)
