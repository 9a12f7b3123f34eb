import type { ImageService } from 'busbar/api/images'
import type { Clock, Log } from 'busbar/sdk'
import type { BuildCachePruner } from '../api.js'
import type { LatestBuilds } from './latest-builds.js'

/** A build that failed is tried again, most often from where it failed: its newest attempts stay. */
const keptAttempts = 3
/** Longer than the engine takes to remove what fills a disk; what is left then goes with the next cleanup. */
const cleanUpMs = 30_000

interface PrunerParts {
  readonly imageService: Pick<ImageService, 'buildSteps' | 'removeBuildStep' | 'clearBuildCache'>
  readonly latest: LatestBuilds
  readonly clock: Clock
  readonly log: Log
  /** What the attempts that are kept may take together. */
  readonly attemptBytes: number
}

/** See `BuildCachePruner`. */
export class StepCachePruner implements BuildCachePruner {
  constructor(private readonly parts: PrunerParts) {}

  async prune(applicationId: string): Promise<void> {
    await this.#clear(applicationId, keptAttempts)
  }

  /**
   * Removes what a build that has just failed, or was cancelled, has left: the container of its step, and its images
   * where they are large or not worth keeping. Never rejects: the build's own failure is to be reported.
   */
  async afterFailure(
    applicationId: string,
    { keepsAttempts }: { readonly keepsAttempts: boolean }
  ): Promise<void> {
    const { imageService, clock, log } = this.parts
    const done = new AbortController()
    const cleanUp = async (): Promise<void> => {
      // The engine is about to remove them itself; until then they hold on to the images that they were made from.
      for (const { id } of await imageService.buildSteps({ applicationId }))
        await imageService.removeBuildStep(id)
      await this.#clear(applicationId, keepsAttempts ? keptAttempts : 0)
    }
    const failed = (error: unknown): void => {
      log.debug({ err: error, applicationId }, 'what a failed build has left stays for now')
    }
    await Promise.race([cleanUp().catch(failed), clock.sleep(cleanUpMs, done.signal).catch(() => {})])
    done.abort()
  }

  async #clear(applicationId: string, newest: number): Promise<void> {
    const { imageService, latest: builds, attemptBytes } = this.parts
    const latest = await builds.find(applicationId)
    await imageService.clearBuildCache(
      { applicationId },
      {
        ends: latest?.stageEnds ?? [],
        newest,
        after: latest?.builtAt ?? new Date(0),
        newestBytes: attemptBytes
      }
    )
  }
}
