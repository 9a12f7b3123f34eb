import type { Owner } from 'busbar/api/containers'
import type { KeptSteps } from 'busbar/api/images'
import type Docker from 'dockerode'
import { type BuildSteps, unneededSteps } from './build-steps.js'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { hasName, isForeign } from './image-info.js'
import { isAmong } from './labels.js'
import { SharedCall } from './shared-call.js'
import { removeStep } from './step-removal.js'
import { StepsInUse } from './steps-in-use.js'

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
  readonly #inUse = new Set<StepsInUse>()

  constructor(private readonly parts: BuildCacheParts) {
    this.#everything = new SharedCall(
      async signal => await listEverything(parts.engine, signal),
      listingLimitMs,
      'the list of all images and containers of the Docker Engine'
    )
  }

  async bytes(owner: Owner): Promise<number> {
    return (await this.#steps(owner)).bytes
  }

  async clear(owner: Owner, keep?: KeptSteps): Promise<void> {
    const { ids, isInUse } = await this.#steps(owner, keep)
    // Asked again: a build may have come to it meanwhile.
    for (const id of ids) if (!isInUse(id)) await removeStep(this.parts.engine, id, { noprune: true })
  }

  /** A build that begins by this process: what it goes on from stays until it has `ended`. */
  use({ applicationId }: Owner): { readonly steps: StepsInUse; readonly ended: () => void } {
    const steps = new StepsInUse(applicationId)
    this.#inUse.add(steps)
    return { steps, ended: () => this.#inUse.delete(steps) }
  }

  /** All images of the engine, steps included, and all containers, of all owners. */
  async listing(): Promise<EngineListing> {
    return await this.#everything.answer()
  }

  async images(): Promise<readonly Docker.ImageInfo[]> {
    return (await this.listing()).images
  }

  /** The images that others continue. */
  async continued(): Promise<ReadonlySet<string>> {
    return new Set((await this.images()).map(({ ParentId }) => ParentId))
  }

  async #steps(
    owner: Owner,
    keep: KeptSteps = keepNone
  ): Promise<BuildSteps & { readonly isInUse: (id: string) => boolean }> {
    const { images, containers } = await this.#everything.answer()
    const inContainers = new Set(containers.map(({ ImageID }) => ImageID))
    const all = new Map(
      images.map(({ Id, Created, Labels, RepoTags, RepoDigests }) => [
        Id,
        {
          createdAt: new Date(Created * 1000),
          owner: this.parts.identity.image(Labels, isForeign({ RepoTags, RepoDigests }))
        }
      ])
    )
    const isInUse = (id: string): boolean => {
      const { createdAt = new Date(0), owner: of } = all.get(id) ?? {}
      return [...this.#inUse].some(use => use.includes({ id, createdAt, applicationId: of?.applicationId }))
    }
    const isSpared = (of: Owner | undefined): boolean =>
      of?.applicationId !== undefined && keep.applications?.has(of.applicationId) === true
    const steps = unneededSteps(
      images.map(({ Id, ParentId, Size, RepoTags, RepoDigests }) => ({
        id: Id,
        parentId: ParentId,
        sizeBytes: Size,
        createdAt: all.get(Id)?.createdAt ?? new Date(0),
        isUsed:
          inContainers.has(Id) ||
          keep.ends.some(id => Id.startsWith(`sha256:${id}`)) ||
          hasName(RepoTags) ||
          hasName(RepoDigests) ||
          isInUse(Id),
        isOwned: isAmong(owner, all.get(Id)?.owner) && !isSpared(all.get(Id)?.owner)
      })),
      keep
    )
    return { ...steps, isInUse }
  }
}

export interface EngineListing {
  readonly images: readonly Docker.ImageInfo[]
  readonly containers: readonly Docker.ContainerInfo[]
}

/** On a machine with many thousands of images it takes long; an engine that has gone never answers. */
const listingLimitMs = 300_000

const listEverything = async (engine: EngineClient, abortSignal: AbortSignal): Promise<EngineListing> =>
  await engine.call(
    'list images',
    async docker => {
      const [images, containers] = await Promise.all([
        docker.listImages({ all: true, abortSignal }),
        docker.listContainers({ all: true, abortSignal })
      ])
      return { images, containers }
    },
    { patient: true, lists: true }
  )

const keepNone: KeptSteps = { ends: [], newest: 0, after: new Date(0) }
