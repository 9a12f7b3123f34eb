import type { EngineDisk } from 'busbar/api/builds'
import { growthOf, type Known } from './disk-accounts.js'
import type { DiskRoom, DiskUse } from './disk-use-decision.js'

/** The disk and its containers as they were last seen with room, or for the first time: what has gone since, and who has grown. */
export class Baseline {
  #freeBytes: number | undefined
  #bytes: ReadonlyMap<string, number> = new Map()
  #at: Date
  #shortSince: number | undefined

  constructor(begunAt: Date) {
    this.#at = begunAt
  }

  /** What was written later is recent. */
  get at(): Date {
    return this.#at
  }

  get isKnown(): boolean {
    return this.#freeBytes !== undefined
  }

  roomOf({ freeBytes, floorBytes, inodes }: EngineDisk): DiskRoom {
    const now = performance.now()
    this.#shortSince = freeBytes < floorBytes ? (this.#shortSince ?? now) : undefined
    const endsByInodes = inodes !== undefined && Math.floor(inodes.free * inodes.bytesEach) <= freeBytes
    return {
      freeBytes,
      floorBytes,
      lostBytes: Math.max(0, (this.#freeBytes ?? freeBytes) - freeBytes),
      shortMs: this.#shortSince === undefined ? 0 : now - this.#shortSince,
      ...(endsByInodes ? { bytesPerInode: inodes.bytesEach } : {})
    }
  }

  grownSince(use: Known): number {
    return this.isKnown ? growthOf(use, this.#bytes.get(use.id)) : 0
  }

  /**
   * `room` is of after the containers were measured: what is written meanwhile counts as growth, and not as missing without a
   * reason.
   */
  note(uses: readonly DiskUse[], room: DiskRoom | undefined, at: Date): void {
    this.#bytes = new Map(uses.map(({ id, bytes }) => [id, bytes]))
    this.#freeBytes = room?.freeBytes
    this.#at = at
  }
}
