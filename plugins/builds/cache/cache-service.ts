import { contributionLimitMs } from 'busbar/api/applications'
import type { ImageService } from 'busbar/api/images'
import { askOrLeaveOut, askRefusal, type Clock, type Contributions, type Log } from 'busbar/sdk'
import type { Builder, CacheSizes } from '../api.js'
import type { ProjectEngines } from '../engines/project-engines.js'
import { problems } from '../problems.js'
import type { FetchedImages } from '../registry/fetched-images.js'
import { builderPrefix, type ImageNameStore, unlabelledName } from '../registry/image-names.js'
import { type RemovalParts, removeUnusedImages } from '../registry/image-removal.js'
import type { CacheAnswer } from '../schemas.js'
import type { CacheClearingStore } from './cache-clearings.js'
import type { LatestBuildStore } from './latest-builds.js'

interface CacheParts {
  readonly imageService: ImageService
  readonly builders: Contributions<Builder>
  /** Says why something must not be done with an application now. */
  readonly gates: Contributions<{ refuses(applicationId: string): Promise<string | null> }>
  readonly clearings: CacheClearingStore
  readonly latest: LatestBuildStore
  readonly names: ImageNameStore
  readonly fetched: RemovalParts['fetched'] & Pick<FetchedImages, 'forget'>
  readonly engines: Pick<ProjectEngines, 'bytes' | 'clear'>
  readonly log: Log
  readonly clock: Clock
}

/** An application, and its project. */
interface Cached {
  readonly projectId: string
  readonly applicationId: string
}

const none: CacheSizes = { buildBytes: 0, launchBytes: 0 }

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const expectedSizes = {
  ms: contributionLimitMs,
  what: 'the sizes of caches',
  takes: 'whole numbers of bytes as { buildBytes, launchBytes }',
  take(answer: unknown): CacheSizes | undefined {
    const { buildBytes, launchBytes } = (answer ?? {}) as Partial<Record<keyof CacheSizes, unknown>>
    return isSize(buildBytes) && isSize(launchBytes) ? { buildBytes, launchBytes } : undefined
  }
}

/** What the builds of an application keep: how much it is, and how to be rid of it. */
export class CacheService {
  constructor(private readonly parts: CacheParts) {}

  /** The build engine of a project keeps one cache for all of its applications. */
  async read({ projectId, applicationId }: Cached): Promise<CacheAnswer> {
    const { imageService, engines, log } = this.parts
    const steps = (await imageService.buildCacheBytes({ applicationId })) + (await engines.bytes(projectId))
    const sizes = []
    for (const entry of this.parts.builders.entries())
      sizes.push(
        (await askOrLeaveOut(entry, value => value.cache?.sizes(applicationId) ?? none, {
          ...expectedSizes,
          log
        })) ?? none
      )
    const build = sizes.reduce((sum, { buildBytes }) => sum + buildBytes, steps)
    const launch = sizes.reduce((sum, { launchBytes }) => sum + launchBytes, 0)
    return { build_cache_bytes: build, launch_cache_bytes: launch, total_bytes: build + launch }
  }

  async clear({ projectId, applicationId }: Cached): Promise<{ status: string }> {
    const { gates, clearings, clock } = this.parts
    for (const { value, plugin } of gates.entries()) {
      const reason = await askRefusal(() => value.refuses(applicationId), {
        ms: contributionLimitMs,
        what: `the gate of the plugin "${plugin}"`
      })
      if (reason !== null) throw problems.cacheBusy({ reason })
    }
    await clearings.mark(applicationId, clock.now())
    await this.#empty(applicationId)
    await this.parts.engines.clear(projectId)
    return { status: 'cleared' }
  }

  /** For an application that is being deleted. */
  async teardown(applicationId: string): Promise<void> {
    await this.#empty(applicationId)
    await this.parts.clearings.remove(applicationId)
    await this.parts.latest.remove(applicationId)
    await this.parts.names.remove(applicationId)
    await this.parts.fetched.forget(applicationId)
    await removeUnusedImages(this.parts)
  }

  async #empty(applicationId: string): Promise<void> {
    for (const { value } of this.parts.builders.entries()) await value.cache?.clear(applicationId)
    const { imageService, names } = this.parts
    // A platform that died during a build has left it; the second is the name that earlier releases used.
    for (const name of [
      unlabelledName(applicationId, await names.tokenOf(applicationId)),
      `${builderPrefix}${applicationId}:latest`
    ])
      await imageService.removeImage(name)
    await imageService.clearBuildCache({ applicationId })
  }
}
