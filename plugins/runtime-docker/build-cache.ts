import type Docker from 'dockerode'
import type { KeptSteps, Owner } from './api.js'
import { type BuildSteps, unneededSteps } from './build-steps.js'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { hasName, isForeign } from './image-info.js'
import { isAmong } from './labels.js'
import { SharedCall } from './shared-call.js'
import { removeStep } from './step-removal.js'

interface BuildCacheParts {
  readonly engine: EngineClient
  readonly identity: Identity
}

/** What builds have left on the engine: steps without a name that no image and no container needs. */
export class BuildCache {
  /**
   * Of all owners, because a step may be needed by an image without an owner: megabytes on an engine with many builds,
   * so that those who ask at the same time share it.
   */
  readonly #everything: SharedCall<EngineListing>

  constructor(private readonly parts: BuildCacheParts) {
    this.#everything = new SharedCall(async () => await listEverything(parts.engine), listingLimitMs)
  }

  async bytes(owner: Owner): Promise<number> {
    return (await this.#steps(owner)).bytes
  }

  async clear(owner: Owner, keep?: KeptSteps): Promise<void> {
    for (const id of (await this.#steps(owner, keep)).ids)
      await removeStep(this.parts.engine, id, { noprune: true })
  }

  /** All images of the engine, steps included, of all owners. */
  async images(): Promise<readonly Docker.ImageInfo[]> {
    return (await this.#everything.answer()).images
  }

  async #steps(owner: Owner, keep: KeptSteps = keepNone): Promise<BuildSteps> {
    const { images, containers } = await this.#everything.answer()
    const inContainers = new Set(containers.map(({ ImageID }) => ImageID))
    return unneededSteps(
      images.map(({ Id, ParentId, Size, Created, RepoTags, RepoDigests, Labels }) => ({
        id: Id,
        parentId: ParentId,
        sizeBytes: Size,
        createdAt: new Date(Created * 1000),
        isUsed:
          inContainers.has(Id) ||
          keep.ends.some(id => Id.startsWith(`sha256:${id}`)) ||
          hasName(RepoTags) ||
          hasName(RepoDigests),
        isOwned: isAmong(owner, this.parts.identity.image(Labels, isForeign({ RepoTags, RepoDigests })))
      })),
      keep
    )
  }
}

interface EngineListing {
  readonly images: readonly Docker.ImageInfo[]
  readonly containers: readonly Docker.ContainerInfo[]
}

/** On a machine with many thousands of images it takes long; an engine that has gone never answers. */
const listingLimitMs = 300_000

const listEverything = async (engine: EngineClient): Promise<EngineListing> =>
  await engine.call(
    'list images',
    async docker => {
      const [images, containers] = await Promise.all([
        docker.listImages({ all: true }),
        docker.listContainers({ all: true })
      ])
      return { images, containers }
    },
    { patient: true }
  )

const keepNone: KeptSteps = { ends: [], newest: 0, after: new Date(0) }
