import type { Clock, Problem } from 'busbar/sdk'
import type { Disk } from '../admission/admission-decision.js'
import { amount } from '../admission/admission-words.js'
import type { Unpacked } from '../context/tar-meter.js'
import { problems } from '../problems.js'

/** How long an image waits for others that are unpacked, or needed by builds under way; then one of those ends. */
const longestWaitMs = 5 * 60_000
/** By then a deployment that was ended has given back what it held. */
const givesBackMs = 60_000
const lookMs = 500
/** While it waits, unused data is removed. */
const makeRoomEveryMs = 5000
/** An engine whose client is gone still unpacks what it was handed, at least as fast as this. */
const slowestBytesPerSecond = 50e6
const leastAfterMs = 10_000
/**
 * The last room is for images that take no more of it: one that is promised all of it and takes it slowly, as its author
 * can arrange, does not keep others from ordinary ones.
 */
const smallBytes = 256 * 2 ** 20
const smallShare = 1 / 4

interface RoomParts {
  /** What is free on each disk that the engine writes to. */
  readonly disks: () => Promise<readonly Disk[]>
  /** Removes unused data; false while something may go yet. See `RoomMaker`. */
  readonly makeRoom: () => Promise<boolean>
  /** Whether there are images that only other preparations need: they may be a cache in a moment. */
  readonly othersHold: (deploymentId: string) => Promise<boolean>
  /** Ends the deployment that holds most, where that is more than this one wants; false where none does. See `endLargestHolder`. */
  readonly endLargest: (wanted: { readonly deploymentId: string; readonly bytes: number }) => Promise<boolean>
  readonly floorBytes: number
  readonly clock: Pick<Clock, 'elapsed' | 'sleep'>
}

/** An image that the engine is about to unpack, and for which deployment. */
interface Arriving {
  readonly image: string
  readonly deploymentId: string
}

export interface Reservation {
  /** `isHeard`: the engine has said how it ended. */
  end(isHeard: boolean): void
}

/**
 * Room on the disks for images that the engine is about to unpack. It cannot be told to stop once it has all of one,
 * so what one takes is known and promised to it before: all that are unpacked at once leave the floor free.
 */
export class ImageRoom {
  readonly #promised = new Set<Promised>()

  constructor(private readonly parts: RoomParts) {}

  /** Makes room, and waits while others take it, or hold what goes when they end. Rejects with a `Problem` where there is none, or with the reason of the signal. */
  async reserve(
    { image, deploymentId }: Arriving,
    size: Unpacked,
    signal: AbortSignal
  ): Promise<Reservation> {
    const { clock, makeRoom, othersHold, endLargest, disks: read } = this.parts
    let until = clock.elapsed() + longestWaitMs
    let isMade = false
    let wasHeld = false
    for (let madeAt = -Infinity; ; ) {
      const disks = await read()
      signal.throwIfAborted()
      // Looked up and promised in one turn: of two at once, the later one sees the other.
      const lack = this.#lackOf(size, disks)
      if (lack === undefined) return this.#promise(size)
      const now = clock.elapsed()
      if (now >= until && madeAt > -Infinity) {
        if (!(await endLargest({ deploymentId, bytes: lack.needs }))) throw noRoom(image, lack)
        until = clock.elapsed() + givesBackMs
      }
      if (!isMade || now - madeAt >= makeRoomEveryMs) {
        madeAt = now
        isMade = await makeRoom()
        continue
      }
      if (lack.others > 0 || (await othersHold(deploymentId))) {
        wasHeld = true
        await clock.sleep(lookMs, signal)
      } else if (wasHeld) {
        // What was held a moment ago can go now: room was made before that.
        wasHeld = false
        isMade = false
      } else throw noRoom(image, lack)
    }
  }

  #promise(size: Unpacked): Reservation {
    const own: Promised = { ...size }
    this.#promised.add(own)
    return {
      end: isHeard => {
        const longestMs = Math.max(leastAfterMs, (size.bytes / slowestBytesPerSecond) * 1000)
        if (isHeard) this.#promised.delete(own)
        else own.until = this.parts.clock.elapsed() + longestMs
      }
    }
  }

  #lackOf(size: Unpacked, disks: readonly Disk[]): Lack | undefined {
    const now = this.parts.clock.elapsed()
    for (const promised of this.#promised)
      if (promised.until !== undefined && promised.until < now) this.#promised.delete(promised)
    return disks
      .map(disk => {
        const needs = takenOn(disk, size)
        const small = Math.min(smallBytes, (disk.freeBytes - this.parts.floorBytes) * smallShare)
        return {
          disk,
          needs,
          others: [...this.#promised].reduce((sum, promised) => sum + takenOn(disk, promised), 0),
          kept: this.parts.floorBytes + (needs > small ? Math.max(0, small) : 0)
        }
      })
      .find(({ disk, needs, others, kept }) => disk.freeBytes - kept < needs + others)
  }
}

interface Promised extends Unpacked {
  until?: number
}

interface Lack {
  readonly disk: Disk
  readonly needs: number
  readonly others: number
  /** What stays free. */
  readonly kept: number
}

const takenOn = ({ bytesPerInode = 0 }: Disk, { bytes, inodes }: Unpacked): number =>
  Math.max(bytes, inodes * bytesPerInode)

const noRoom = (image: string, { disk: { what, path, freeBytes }, needs, others, kept }: Lack): Problem =>
  problems.imageRoom({
    image,
    needs: amount(needs),
    free: amount(freeBytes),
    what,
    path,
    others: others === 0 ? '' : `, and ${amount(others)} are promised to others`,
    floor: amount(kept)
  })
