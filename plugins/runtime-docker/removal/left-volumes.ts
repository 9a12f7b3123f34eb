import { type Clock, type Log, pause } from 'busbar/sdk'
import type { FileHolders } from '../file-holders.js'
import type { VolumeEmptier } from './volume-emptier.js'
import type { VolumeHolder, VolumeHolders } from './volume-holders.js'

interface LeftVolumesParts {
  readonly holders: Pick<VolumeHolders, 'list' | 'count' | 'remove' | 'removeLeftImages'>
  readonly files: Pick<FileHolders, 'removeLeft'>
  readonly emptier: Pick<VolumeEmptier, 'empty'>
  /** Removes a volume unless it is gone or in use. */
  readonly removeVolume: (name: string) => Promise<void>
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
}

/** What other processes leave, and what a look before could not do, is found by then. */
const everyMs = 60_000
/** What a project has of them counts for nobody's share of the disk: with more, its next removals wait. */
const mostOfProject = 4
const longestWaitMs = 60_000
const neverAborted = new AbortController().signal

/** Takes away the volumes of containers that have gone, which are held until they are empty, and files that none has mounted. */
export class LeftVolumes {
  /** By holder, what is under way. */
  readonly #going = new Map<string, Promise<void>>()
  #wake = (): void => {}
  /** When it aborts, the platform stops. */
  #until = neverAborted

  constructor(private readonly parts: LeftVolumesParts) {}

  /** There are more of this project now. Where they are many, this waits for them to go, but no longer than a minute. */
  async note(projectId = ''): Promise<void> {
    this.#wake()
    const { holders, log } = this.parts
    try {
      if ((await holders.count(projectId)) > mostOfProject)
        await this.#waitFor(holder => holder.projectId === projectId, longestWaitMs)
    } catch (error) {
      log.debug({ err: error, projectId }, 'volumes that are to go were not waited for')
    }
  }

  /** Until `signal` aborts. */
  async keepRemoving(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    this.#until = signal
    while (!signal.aborted) {
      const round = new AbortController()
      this.#wake = () => round.abort()
      signal.addEventListener('abort', this.#wake, { once: true, signal: round.signal })
      await this.#begin().catch((error: unknown) => {
        log.debug({ err: error }, 'volumes of containers that are gone stay for now')
      })
      await pause(clock, everyMs, round.signal)
      round.abort()
    }
    await Promise.all(this.#going.values())
  }

  /** Until those of a container are gone that has just been removed, but no longer. What takes longer goes on. */
  async waitFor(containerId: string, ms: number): Promise<void> {
    await this.#waitFor(holder => holder.containerId === containerId, ms)
  }

  async #waitFor(isMeant: (holder: VolumeHolder) => boolean, ms: number): Promise<void> {
    const { clock, holders } = this.parts
    const end = new AbortController()
    const work = async (): Promise<void> => {
      const meant = (await holders.list()).filter(isMeant)
      await Promise.all(meant.map(async holder => await this.#start(holder)))
    }
    await Promise.race([work(), pause(clock, ms, end.signal)]).finally(() => end.abort())
  }

  /** Each of those that are there now is tried once. */
  async removeAll(): Promise<void> {
    await this.#begin()
    await Promise.all(this.#going.values())
  }

  async #begin(): Promise<void> {
    const { holders, files } = this.parts
    for (const holder of await holders.list()) void this.#start(holder)
    await holders.removeLeftImages()
    await files.removeLeft()
  }

  async #start(holder: VolumeHolder): Promise<void> {
    const known = this.#going.get(holder.id)
    if (known !== undefined) return await known
    const going = this.#remove(holder)
      .catch((error: unknown) => {
        this.parts.log.warn(
          { err: error, volumes: holder.volumes },
          'volumes of a container that is gone stay for now'
        )
      })
      .finally(() => this.#going.delete(holder.id))
    this.#going.set(holder.id, going)
    await going
  }

  async #remove(holder: VolumeHolder): Promise<void> {
    const { holders, emptier, removeVolume } = this.parts
    const outcome = await emptier.empty(holder.volumes, holder.projectId, {
      isLeft: true,
      signal: this.#until
    })
    if (outcome === 'used' || outcome === 'unfinished') return
    await holders.remove(holder)
    // A container that was emptying them is gone a moment before the engine says that they are free.
    for (const name of holder.volumes) await removeVolume(name)
  }
}
