import type { ContainerRuntime } from 'busbar/api/containers'
import type { Jobs, OptionalHandle, Tx } from 'busbar/sdk'
import { problems } from '../problems.js'
import type { DatabaseStore } from '../records/database-store.js'

interface GivenUpParts {
  readonly jobs: Jobs
  readonly store: Pick<DatabaseStore, 'find' | 'keptVolumes' | 'ownerOf'>
  readonly runtime: OptionalHandle<ContainerRuntime>
}

/** A volume of a restore that is over: the one from before it, or the one that came to nothing. No other work has its name. */
export interface GivenUpVolume {
  readonly databaseId: string
  readonly volume: string
}

/** Removes volumes that restores leave, which may have many files: nobody waits for that, and no crash forgets it. */
export class GivenUpVolumes {
  constructor(private readonly parts: GivenUpParts) {}

  /** It is removed once `tx` has committed, or at `runAt`. */
  async giveUp(databaseId: string, volume: string, tx: Tx, runAt?: Date): Promise<void> {
    const { jobs, store } = this.parts
    const owner = (await store.ownerOf(databaseId, tx)) ?? databaseId
    // One at a time of an owner: emptying may take long, and others wait for a worker too.
    const options = { key: volume, queue: `remove-volume:${owner}`, ...(runAt !== undefined && { runAt }) }
    await jobs.enqueue('remove-volume', { databaseId, volume }, options, tx)
  }

  /** Rejects where it is to be tried again. Does nothing where it is gone, or somebody's. */
  async remove({ databaseId, volume }: GivenUpVolume): Promise<void> {
    const { store } = this.parts
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    const row = await store.find(databaseId)
    const kept = [row?.volume, row?.former_volume, row?.next_volume, ...(await store.keptVolumes(databaseId))]
    if (kept.includes(volume)) return
    if ((await runtime.volumeNames({ databaseId })).includes(volume)) await runtime.removeVolume(volume)
  }
}
