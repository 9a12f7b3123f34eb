import type { ContainerRuntime } from 'busbar/api/containers'
import type { DeploymentDirectory } from 'busbar/api/deployments'
import { type Bus, bounded, isProblem, type Log, type Tx, Wakeable } from 'busbar/sdk'
import type { DiscardedVolume, EngineVolumeStore } from './engine-volume-store.js'

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
/** With what the engine may be asked for by others before; what takes longer goes on, and is asked for again. */
const longestMs = 30 * 60_000

/** Removes the files of volumes that were deleted with their data, as soon as no container has them any more. */
export class DiscardedVolumes {
  readonly #rest = new Wakeable()
  /** By project. */
  readonly #working = new Map<string, Promise<void>>()

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
        await this.#begin(signal)
        await this.#rest.sleep(signal, pauseMs)
        pauseMs = Math.min(2 * pauseMs, longestPauseMs)
      }
    } finally {
      stop()
      await Promise.all(this.#working.values())
    }
  }

  /** Of each project one after another: what has millions of files keeps those of nobody else. */
  async #begin(signal: AbortSignal): Promise<void> {
    const { store, log } = this.parts
    try {
      const ofProjects = new Map<string, DiscardedVolume[]>()
      for (const volume of await store.discarded()) {
        const own = ofProjects.get(volume.project_id)
        if (own === undefined) ofProjects.set(volume.project_id, [volume])
        else own.push(volume)
      }
      for (const [project, volumes] of ofProjects) {
        if (this.#working.has(project)) continue
        const work = this.#removeAll(volumes, signal).finally(() => this.#working.delete(project))
        this.#working.set(project, work)
      }
    } catch (error) {
      log.warn({ err: error }, 'the files of deleted volumes are not removed yet')
    }
  }

  async #removeAll(volumes: readonly DiscardedVolume[], signal: AbortSignal): Promise<void> {
    for (const volume of volumes) {
      if (signal.aborted) return
      await this.#remove(volume, signal)
    }
  }

  async #remove(
    { name, application_id: applicationId }: DiscardedVolume,
    signal: AbortSignal
  ): Promise<void> {
    const { store, runtime, deployments, log } = this.parts
    try {
      // It may have looked before, and be about to mount it. One that begins from here on does not see it any more.
      if (await deployments.isRollingOut(applicationId)) return
      const remove = async (): Promise<void> => await runtime.removeVolume(name)
      await bounded(remove, { ms: longestMs, signal, what: 'the engine' })
      await store.forget(name)
    } catch (error) {
      if (signal.aborted) return
      const isUsed = isProblem(error) && error.code === 'E_VOLUME_IN_USE'
      if (isUsed) log.debug({ volume: name }, 'a container still has a deleted volume')
      else log.warn({ err: error, volume: name }, 'the files of a deleted volume are not removed yet')
    }
  }
}
