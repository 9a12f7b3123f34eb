import type { ContainerRuntime } from 'busbar/api/containers'
import { bounded, type Clock, type Log } from 'busbar/sdk'
import type { VolumeStore } from './volume-store.js'

interface VolumeSizesParts {
  readonly store: Pick<VolumeStore, 'noteSizes'>
  readonly runtime: Pick<ContainerRuntime, 'volumes'>
  readonly clock: Clock
  readonly log: Log
}

/** To measure one volume, an engine walks through all that it has. */
const leastBetweenMs = 60_000
/** What takes longer is seen by the next one who asks. */
const waitMs = 5_000

/** How large volumes are: measured when somebody asks, for all of the installation at once, and not again for a minute. */
export class VolumeSizes {
  #measuring: Promise<void> | undefined
  #endedAt: number | undefined

  constructor(private readonly parts: VolumeSizesParts) {}

  /** The rows have them now, as far as the engine tells them in time. */
  async refresh(): Promise<void> {
    const { clock, log } = this.parts
    const isFresh = this.#endedAt !== undefined && clock.elapsed() - this.#endedAt < leastBetweenMs
    if (isFresh) return
    this.#measuring ??= this.#measure()
      .catch((error: unknown) => {
        log.debug({ err: error }, 'the sizes of volumes are not known anew')
      })
      .finally(() => {
        this.#measuring = undefined
        this.#endedAt = clock.elapsed()
      })
    const measuring = this.#measuring
    // Who is late goes on; the list tells what was measured last.
    await bounded(async () => await measuring, { ms: waitMs, what: 'the engine' }).catch(() => {})
  }

  async #measure(): Promise<void> {
    const { store, runtime, clock } = this.parts
    const volumes = await runtime.volumes({})
    await store.noteSizes(new Map(volumes.map(({ name, sizeBytes }) => [name, sizeBytes])), clock.now())
  }
}
