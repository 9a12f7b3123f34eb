import type { MeasuringLimits } from 'busbar/api/containers'
import type { ImageUse } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type Docker from 'dockerode'
import type { EngineListing } from './build-cache.js'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { hasName, isForeign, isLoadedName } from './image-info.js'
import { type HistoryLine, layerSizes } from './layer-sizes.js'

interface ImageUseParts {
  readonly engine: EngineClient
  readonly identity: Pick<Identity, 'image'>
  readonly list: () => Promise<EngineListing>
}

type Parts = ImageUse['parts']
const askedAtOnce = 8

/**
 * What images take on the engine. A list of all tells it of what the engine has built, by what each step adds to the one before; of
 * where these begin, and of what was loaded, the layers have to be asked for: they never change.
 */
export class ImageUses {
  /** By the id of an image that continues no other one. */
  readonly #layers = new Map<string, Parts>()

  constructor(private readonly parts: ImageUseParts) {}

  async read({ allMs }: Pick<MeasuringLimits, 'allMs'>): Promise<readonly ImageUse[]> {
    const endsAt = performance.now() + allMs
    const { images, containers } = await this.parts.list()
    const byId = new Map(images.map(image => [image.Id, image]))
    const containersOf = new Map<string, string[]>()
    for (const { Id, ImageID } of containers)
      containersOf.set(ImageID, [...(containersOf.get(ImageID) ?? []), Id])
    const found = images
      .filter(image => hasName(image.RepoTags) || hasName(image.RepoDigests) || containersOf.has(image.Id))
      .map(image => ({ image, chain: chainOf(image, byId) }))
    await this.#askFor(
      found.flatMap(({ chain }) => chain[0]?.Id ?? []),
      endsAt
    )
    this.#forgetAllBut(byId)
    return found.map(({ image, chain }) => {
      const { Id: id, RepoTags: tags, Labels: labels } = image
      const names = (tags ?? []).filter(tag => hasName([tag]))
      // What `load` has named is of those that keep it, whatever its labels say.
      const isLoaded = names.length > 0 && names.every(isLoadedName)
      const owner = isLoaded ? undefined : this.parts.identity.image(labels, isForeign(image))
      return {
        id,
        names,
        ...(owner === undefined ? {} : { owner }),
        containerIds: containersOf.get(id) ?? [],
        parts: this.#partsOf(chain)
      }
    })
  }

  #partsOf(chain: readonly Docker.ImageInfo[]): Parts {
    return chain.flatMap((image, index) => {
      const below = chain[index - 1]
      return below === undefined
        ? (this.#layers.get(image.Id) ?? [])
        : [{ id: image.Id, bytes: Math.max(0, image.Size - below.Size) }]
    })
  }

  async #askFor(ids: readonly string[], endsAt: number): Promise<void> {
    const unknown = [...new Set(ids)].filter(id => !this.#layers.has(id))
    for (let at = 0; at < unknown.length && performance.now() < endsAt; at += askedAtOnce)
      await Promise.all(
        unknown.slice(at, at + askedAtOnce).map(
          async id =>
            await this.#ask(id).catch((error: unknown) => {
              // Of one that is damaged the engine says nothing: it does not hide what all others take.
              if (isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE') throw error
            })
        )
      )
  }

  async #ask(id: string): Promise<void> {
    const told = await this.parts.engine.call(
      'say what an image is made of',
      async docker => {
        const image = docker.getImage(id)
        const [{ RootFS, Size }, history] = await Promise.all([image.inspect(), image.history()])
        return layerSizes(RootFS?.Layers ?? [], history as readonly HistoryLine[], Size)
      },
      { absent: [404] }
    )
    if (told !== undefined) this.#layers.set(id, told)
  }

  #forgetAllBut(there: ReadonlyMap<string, unknown>): void {
    for (const id of this.#layers.keys()) if (!there.has(id)) this.#layers.delete(id)
  }
}

/** It and what it continues, the first one first. */
function chainOf(
  image: Docker.ImageInfo,
  byId: ReadonlyMap<string, Docker.ImageInfo>
): readonly Docker.ImageInfo[] {
  const chain: Docker.ImageInfo[] = []
  for (let at: Docker.ImageInfo | undefined = image; at !== undefined; at = byId.get(at.ParentId))
    chain.push(at)
  return chain.reverse()
}
