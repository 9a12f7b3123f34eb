import type { Owner } from 'busbar/api/containers'
import type { ImageInfo, ImageService } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import type { ImageRoom, Reservation } from '../disk/image-room.js'
import { problems } from '../problems.js'
import { imageArchive } from '../registry/image-archive.js'
import type { MadeImage } from './made-image.js'

interface HandOverParts {
  readonly imageService: Pick<ImageService, 'image' | 'images' | 'imageLabels' | 'load'>
  readonly room: Pick<ImageRoom, 'reserve'>
}

interface HandOver {
  readonly made: MadeImage
  readonly tag: string
  readonly owner: Required<Pick<Owner, 'projectId' | 'applicationId' | 'deploymentId'>>
  /** Ids of images that everybody may build upon, and that this build may have been built upon. */
  readonly bases: readonly string[]
}

/**
 * Brings an image from a build engine to the engine of the platform, under its tag. Layers are left out that the engine holds in
 * an image of the same application, or in a base that everybody may use: never because a build engine says that it has them.
 */
export async function handOver(
  parts: HandOverParts,
  image: HandOver,
  context: BuildContext
): Promise<ImageInfo> {
  const labels = await parts.imageService.imageLabels(image.owner)
  const config = labelled(image.made.config, labels)
  const held = await heldLayers(parts, image)
  try {
    return await load(parts, { ...image, config, held }, context)
  } catch (error) {
    // Removed meanwhile, or an engine that keeps layers with their images only.
    if (held === 0 || !isProblem(error) || error.code !== 'E_IMAGE_INCOMPLETE') throw error
    return await load(parts, { ...image, config, held: 0 }, context)
  }
}

async function load(
  { imageService, room }: HandOverParts,
  { made, tag, owner, config, held }: HandOver & { readonly config: Buffer; readonly held: number },
  { log, signal }: BuildContext
): Promise<ImageInfo> {
  const missing = made.layers.length - held
  log({
    level: 'debug',
    msg: `Handing the image over: ${missing} of its ${made.layers.length} layers are new to the engine`
  })
  let reserved: Reservation | undefined
  const archive = imageArchive({
    config,
    layers: made.layers.map((layer, at) => ({
      size: layer.size,
      ...(at >= held && { open: () => made.open(layer) })
    })),
    beforeEnd: async () => {
      const { fault, ...size } = made.unpacked()
      if (fault !== undefined)
        throw fault === 'sparse'
          ? problems.imageSparse({ image: tag })
          : problems.imageUnclear({ image: tag })
      reserved = await room.reserve({ image: tag, deploymentId: owner.deploymentId }, size, signal)
    }
  })
  let isHeard = false
  try {
    const image = await imageService.load(archive, { name: tag, builtFor: owner, signal })
    isHeard = true
    const wanted = made.layers.map(({ diffId }) => diffId)
    if (shared(image.layers ?? [], wanted) === wanted.length && image.layers?.length === wanted.length)
      return image
    throw problems.imageUnlike({ image: tag })
  } finally {
    reserved?.end(isHeard)
  }
}

/** How many layers, the lowest first, need not be handed over. */
async function heldLayers(
  { imageService }: HandOverParts,
  { made, owner, bases }: HandOver
): Promise<number> {
  const wanted = made.layers.map(({ diffId }) => diffId)
  const own = (await imageService.images({ applicationId: owner.applicationId })).map(({ id }) => id)
  let most = 0
  for (const id of [...bases, ...own.slice(0, maxLooked)]) {
    const { layers = [] } = (await imageService.image(id)) ?? {}
    most = Math.max(most, shared(layers, wanted))
  }
  return most
}

/** An application has some images for rollbacks; each that is looked at costs a question. */
const maxLooked = 12

function shared(known: readonly string[], wanted: readonly string[]): number {
  const different = wanted.findIndex((layer, at) => known[at] !== layer)
  return different < 0 ? wanted.length : different
}

/** The configuration was written anew, without labels that mean something to a platform. */
function labelled(config: Buffer, labels: Readonly<Record<string, string>>): Buffer {
  const written = JSON.parse(config.toString()) as { config: { Labels?: Record<string, string> } }
  written.config.Labels = { ...written.config.Labels, ...labels }
  return Buffer.from(JSON.stringify(written))
}
