import type { Clock, Problem } from 'busbar/sdk'
import type { Disk } from '../admission/admission-decision.js'
import { amount } from '../admission/admission-words.js'
import { problems } from '../problems.js'

/** An engine goes on to unpack what it was handed, whoever has hung up. */
const afterFailureMs = 5 * 60_000

interface RoomParts {
  /** What is free on each disk that the engine writes to. */
  readonly disks: () => Promise<readonly Disk[]>
  readonly floorBytes: number
  readonly clock: Pick<Clock, 'now'>
}

export interface Reservation {
  /** Whether the engine has unpacked it. */
  end(isDone: boolean): void
}

/**
 * Room on the disks for images that the engine is about to unpack. It cannot be told to stop once it has all of one,
 * so what one takes is known and promised to it before: all that are unpacked at once leave the floor free.
 */
export class ImageRoom {
  readonly #promised = new Set<{ readonly bytes: number; until?: number }>()

  constructor(private readonly parts: RoomParts) {}

  /** Throws a `Problem` where there is no room. */
  async reserve(image: string, bytes: number): Promise<Reservation> {
    const { clock, floorBytes } = this.parts
    // Promised before anything is waited for: of two at once, the later one sees the other.
    const own = { bytes }
    this.#promised.add(own)
    try {
      const disks = await this.parts.disks()
      const now = clock.now().getTime()
      for (const promise of this.#promised)
        if (promise.until !== undefined && promise.until < now) this.#promised.delete(promise)
      const promised = [...this.#promised].reduce((sum, promise) => sum + promise.bytes, 0)
      const short = disks.find(({ freeBytes }) => freeBytes - floorBytes < promised)
      if (short !== undefined) throw noRoom(image, { short, bytes, others: promised - bytes, floorBytes })
    } catch (error) {
      this.#promised.delete(own)
      throw error
    }
    return {
      end: isDone => {
        if (isDone) this.#promised.delete(own)
        else Object.assign(own, { until: clock.now().getTime() + afterFailureMs })
      }
    }
  }
}

function noRoom(
  image: string,
  {
    short,
    bytes,
    others,
    floorBytes
  }: {
    readonly short: Disk
    readonly bytes: number
    readonly others: number
    readonly floorBytes: number
  }
): Problem {
  return problems.imageRoom({
    image,
    needs: amount(bytes),
    free: amount(short.freeBytes),
    what: short.what,
    path: short.path,
    others: others === 0 ? '' : `, ${amount(others)} are promised to others`,
    floor: amount(floorBytes)
  })
}
