import type { ContainerRuntime } from 'busbar/api/containers'
import type { DeploymentDirectory } from 'busbar/api/deployments'
import { type Bus, isProblem, type Log, type Tx, Wakeable } from 'busbar/sdk'
import type { EngineVolumeStore } from './engine-volume-store.js'

interface DiscardedVolumesParts {
  readonly store: Pick<EngineVolumeStore, 'discarded' | 'forget'>
  readonly runtime: Pick<ContainerRuntime, 'removeVolume'>
  readonly deployments: Pick<DeploymentDirectory, 'isRollingOut'>
  readonly bus: Bus
  readonly log: Log
}

const topic = 'volumes.discarded'
/** A container that still has one ends some time after the next deploy, and nobody tells of it: looked for soon, then seldom. */
const firstPauseMs = 2_000
const longestPauseMs = 60_000

/** Removes the files of volumes that were deleted with their data, as soon as no container has them any more. */
export class DiscardedVolumes {
  readonly #rest = new Wakeable()

  constructor(private readonly parts: DiscardedVolumesParts) {}

  /** There is one more, once `tx` has committed. */
  async tell(name: string, tx: Tx): Promise<void> {
    await this.parts.bus.signal(topic, name, tx)
  }

  /** What kept one in use may end from now on. */
  async lookAgain(applicationId: string): Promise<void> {
    await this.parts.bus.signal(topic, applicationId)
  }

  async keepRemoving(signal: AbortSignal): Promise<void> {
    let pauseMs = firstPauseMs
    const stop = this.parts.bus.onSignal(topic, () => {
      pauseMs = firstPauseMs
      this.#rest.wake()
    })
    try {
      while (!signal.aborted) {
        await this.removeAll(signal)
        await this.#rest.sleep(signal, pauseMs)
        pauseMs = Math.min(2 * pauseMs, longestPauseMs)
      }
    } finally {
      stop()
    }
  }

  async removeAll(signal: AbortSignal): Promise<void> {
    const { store, deployments, log } = this.parts
    try {
      for (const { name, application_id: applicationId } of await store.discarded()) {
        if (signal.aborted) return
        // It may have looked before, and be about to mount it. One that begins from here on does not see it any more.
        if (!(await deployments.isRollingOut(applicationId))) await this.#remove(name)
      }
    } catch (error) {
      log.warn({ err: error }, 'the files of deleted volumes are not removed yet')
    }
  }

  async #remove(name: string): Promise<void> {
    const { store, runtime, log } = this.parts
    try {
      await runtime.removeVolume(name)
      await store.forget(name)
    } catch (error) {
      const isUsed = isProblem(error) && error.code === 'E_VOLUME_IN_USE'
      if (isUsed) log.debug({ volume: name }, 'a container still has a deleted volume')
      else log.warn({ err: error, volume: name }, 'the files of a deleted volume are not removed yet')
    }
  }
}
