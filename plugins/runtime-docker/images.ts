import { addAbortSignal, type Readable } from 'node:stream'
import type { Owner } from 'busbar/api/containers'
import type { BuiltImage, ImageInfo } from 'busbar/api/images'
import type Docker from 'dockerode'
import type { EngineClient } from './engine-client.js'
import type { Identity } from './identity.js'
import { imageInfo, isForeign, isLoadedName } from './image-info.js'
import { checkImage, parseImageReference } from './image-reference.js'
import { imageInstanceLabel, isAmong, ownerFilter } from './labels.js'
import { asReadable } from './output-lines.js'
import { problems } from './problems.js'

/** What a processor runs beside its own kind. */
const alsoRuns: Readonly<Record<string, readonly string[]>> = { amd64: ['386'], arm64: ['arm'] }

interface ImagesParts {
  readonly engine: EngineClient
  readonly instanceId: string
  readonly identity: Identity
}

/** Images on the engine: looked up, named and removed. */
export class Images {
  #processor: Promise<string> | undefined

  constructor(private readonly parts: ImagesParts) {}

  async find(reference: string): Promise<ImageInfo | undefined> {
    const seen = await this.inspect(reference)
    return seen === undefined ? undefined : await this.info(seen)
  }

  /** What a container inherits; undefined where there is no such image. */
  async config(reference: string): Promise<Docker.ImageInspectInfo['Config'] | undefined> {
    return (await this.inspect(reference))?.Config
  }

  async list(owner: Owner): Promise<readonly BuiltImage[]> {
    const label = [`${imageInstanceLabel}=${this.parts.instanceId}`, ...ownerFilter(owner)]
    const found = await this.parts.engine.call(
      'list images',
      async docker => await docker.listImages({ filters: { label } }),
      { lists: true }
    )
    return found.flatMap(image => {
      const imageOwner = this.parts.identity.image(image.Labels, isForeign(image))
      if (imageOwner === undefined || !isAmong(owner, imageOwner)) return []
      const names = (image.RepoTags ?? []).filter(tag => tag !== '<none>:<none>')
      const tags = names.filter(name => !isLoadedName(name))
      return names.length > 0 && tags.length === 0 ? [] : [{ id: image.Id, tags, owner: imageOwner }]
    })
  }

  async remove(reference: string): Promise<void> {
    const seen = await this.inspect(reference)
    if (seen === undefined) return
    // A name that the platform gave it itself is the platform's to take back, whatever the labels say: they came with it.
    const builtBy = isLoadedName(reference) ? undefined : seen.Config.Labels?.[imageInstanceLabel]
    if (builtBy !== undefined && builtBy !== '' && builtBy !== this.parts.instanceId)
      throw problems.imageForeign({ image: reference })
    await this.parts.engine.call(
      `remove the image ${reference}`,
      async docker => {
        await docker.getImage(reference).remove()
      },
      {
        absent: [404],
        explain: ({ statusCode, words }) =>
          statusCode === 409 ? problems.imageInUse({ image: reference, reason: words }) : undefined
      }
    )
  }

  async name(id: string, tag: string): Promise<void> {
    const { name, version } = parseImageReference(tag)
    await this.parts.engine.call(`name the image ${tag}`, async docker => {
      await docker.getImage(id).tag({ repo: name, tag: version })
    })
  }

  /** See `ImageService.save`. */
  async save(reference: string, signal: AbortSignal): Promise<Readable> {
    checkImage(reference)
    return await this.parts.engine.call(
      `save the image ${reference}`,
      async docker => addAbortSignal(signal, asReadable(await docker.getImage(reference).get())),
      {
        patient: true,
        explain: ({ statusCode }) =>
          statusCode === 404 ? problems.imageMissing({ image: reference }) : undefined
      }
    )
  }

  /** Unless it has a name: then it was there before whatever has made it again. */
  async discard(id: string): Promise<void> {
    if ((await this.inspect(id))?.RepoTags.length !== 0) return
    await this.parts.engine
      .call(
        'remove an image that is of no use',
        async docker => {
          await docker.getImage(id).remove()
        },
        { absent: [404, 409] }
      )
      .catch(() => undefined)
  }

  async inspect(reference: string): Promise<Docker.ImageInspectInfo | undefined> {
    checkImage(reference)
    return await this.parts.engine.call(
      `inspect the image ${reference}`,
      async docker => await docker.getImage(reference).inspect(),
      { absent: [404] }
    )
  }

  async info(seen: Docker.ImageInspectInfo): Promise<ImageInfo> {
    const { Architecture: architecture, Os: system } = seen
    const own = await this.#ownProcessor()
    const isForeign =
      architecture !== '' && architecture !== own && alsoRuns[own]?.includes(architecture) !== true
    return { ...imageInfo(seen), ...(isForeign && { foreignPlatform: `${system}/${architecture}` }) }
  }

  /** As images name it; an engine that is asked once does not move to another machine. */
  async #ownProcessor(): Promise<string> {
    this.#processor ??= this.parts.engine.call(
      'describe itself',
      async docker => (await docker.version()).Arch
    )
    try {
      return await this.#processor
    } catch (error) {
      this.#processor = undefined
      throw error
    }
  }
}
