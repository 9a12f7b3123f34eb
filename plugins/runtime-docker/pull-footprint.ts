import type { BuildUsage, Owner } from './api.js'
import { byteCount, type PullEvent } from './pull-progress.js'

/** As many times its packed size an ordinary layer has when it is unpacked, at most. */
const unpackedShare = 4

/**
 * What one pull has written on the engine so far, at most: what has come of its layers, and what that makes when it is
 * unpacked. A layer that is packed better than others makes more, so while one is unpacked this is incomplete.
 */
export class PullFootprint {
  readonly #layers = new Map<string, { readonly came: number; readonly unpacked: number }>()

  constructor(private readonly owner: Owner) {}

  read({ id, status, progressDetail }: PullEvent): void {
    if (typeof id !== 'string' || (status !== 'Downloading' && status !== 'Extracting')) return
    const bytes = byteCount(progressDetail, 'current')
    const { came, unpacked } = this.#layers.get(id) ?? { came: 0, unpacked: 0 }
    this.#layers.set(
      id,
      status === 'Downloading'
        ? { came: Math.max(came, bytes), unpacked }
        : { came, unpacked: Math.max(unpacked, bytes) }
    )
  }

  async measure(): Promise<BuildUsage> {
    const layers = [...this.#layers.values()]
    return {
      owner: this.owner,
      bytes: layers.reduce((sum, { came, unpacked }) => sum + came + unpacked * unpackedShare, 0),
      runningStepBytes: 0,
      isPartial: layers.some(({ unpacked }) => unpacked > 0)
    }
  }
}
