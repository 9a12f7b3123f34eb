import type { Owner } from 'busbar/api/containers'
import type { BuildUsage } from 'busbar/api/images'
import { currentBytes } from './engine-progress.js'
import type { Footprint } from './footprint.js'

/** As many times its packed size an ordinary layer has when it is unpacked, at most. */
const unpackedShare = 4

/**
 * What taking in one image has written on the engine so far, at most: the archive, which it keeps until the end, and what
 * has been read of its layers to unpack them. A layer that is packed better than others makes more, so while one is
 * unpacked this is incomplete.
 */
export class LoadFootprint implements Footprint {
  readonly #unpacked = new Map<string, number>()
  #archive = 0

  constructor(private readonly owner: Owner) {}

  take(bytes: number): void {
    this.#archive += bytes
  }

  /** True for the first event of a further layer. */
  read({ id, status, progressDetail }: Readonly<Record<string, unknown>>): boolean {
    if (typeof id !== 'string' || status !== 'Loading layer') return false
    const isFirst = !this.#unpacked.has(id)
    this.#unpacked.set(id, Math.max(this.#unpacked.get(id) ?? 0, currentBytes(progressDetail)))
    return isFirst
  }

  async measure(): Promise<BuildUsage> {
    const packed = [...this.#unpacked.values()].reduce((sum, bytes) => sum + bytes, 0)
    return {
      owner: this.owner,
      bytes: this.#archive + packed * unpackedShare,
      runningStepBytes: 0,
      isPartial: this.#unpacked.size > 0
    }
  }
}
