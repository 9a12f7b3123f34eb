import { type ContainerRuntime, type ImageInfo, imageReferenceShape } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { problems } from '../problems.js'
import { builderPrefix } from './image-names.js'
import { hasLayersOfOthers, pullJudged } from './judged-pull.js'
import { findByName, fullRepository, longestReference } from './local-image.js'
import type { PrivateImages } from './private-images.js'

export interface ResolverParts {
  readonly runtime: ContainerRuntime
  readonly privateImages: PrivateImages
}

/** An image by name, for a build of an application. */
interface WantedImage {
  readonly reference: string
  readonly applicationId: string
  /** `linux/amd64`; absent: the machine's own. What is for another one is the caller's to refuse. */
  readonly platform?: string
}

/**
 * What a name stands for now, once it is certain that the application may use it: what the engine holds under that
 * name, else what its registry hands out to everybody. Ids are no names: they may be anybody's.
 */
export async function resolveImage(
  parts: ResolverParts,
  wanted: WantedImage,
  context: BuildContext
): Promise<ImageInfo> {
  const { reference, applicationId } = wanted
  const { name, digest, tag } =
    (reference.length <= longestReference ? imageReferenceShape.exec(reference)?.groups : undefined) ?? {}
  if (name === undefined) throw problems.badImageName({ image: reference.slice(0, 200) })
  const last = name.slice(name.lastIndexOf('/') + 1)
  if (last === 'sha256' || last.startsWith(builderPrefix))
    throw problems.badImageName({ image: reference.slice(0, 200) })
  // With its tag written out, the engine cannot take a name for the beginning of an id.
  const written = digest === undefined && tag === undefined ? `${reference}:latest` : reference
  const { runtime, privateImages } = parts
  const held = await findByName(runtime, written)
  if (held?.builtFor !== undefined && held.builtFor.applicationId !== applicationId)
    throw problems.imageOfOthers({ image: reference })
  const mayBeOfOthers =
    held !== undefined &&
    ((await privateImages.isBeingPulled(written, held.id, applicationId)) ||
      (await privateImages.isOfOthers(held.id, applicationId)) ||
      (await hasLayersOfOthers(privateImages, held, { applicationId, name: written })))
  const isAsMeant =
    held !== undefined && (digest !== undefined || isAsWanted(held, { ...wanted, reference: written }))
  if (isAsMeant && !mayBeOfOthers) return held
  try {
    return await pullJudged(parts, { name: written, applicationId, isBase: true }, context)
  } catch (error) {
    if (held === undefined || mayBeOfOthers || context.signal.aborted || !isProblem(error)) throw error
    const msg = `${error.message}. The image ${written} on this machine is used as it is, although it is made for ${held.platform}.`
    context.log({ level: 'warning', msg })
    return held
  }
}

/** The same for the whole id of an image. */
export async function checkImageId(
  { runtime, privateImages }: ResolverParts,
  id: string,
  applicationId: string
): Promise<void> {
  const image = await runtime.image(id)
  const isOfOthers =
    image === undefined ||
    // Without labels of ours, and whoever may name it by its id alone is not known.
    (image.builtFor === undefined && !image.repoTags?.length && image.repoDigests.length === 0) ||
    (image.builtFor !== undefined && image.builtFor.applicationId !== applicationId) ||
    (await privateImages.isOfOthers(image.id, applicationId)) ||
    (await hasLayersOfOthers(privateImages, image, { applicationId }))
  // What does not exist and what belongs to somebody else read alike.
  if (isOfOthers) throw problems.imageOfOthers({ image: id.slice(0, 19) })
}

/**
 * False when the registry may have another one for this machine: whoever pulled it by hand for one of another kind has
 * made the name mean that.
 */
function isAsWanted(
  { foreignPlatform, platform = '', repoDigests }: ImageInfo,
  wanted: WantedImage
): boolean {
  if (foreignPlatform === undefined) return true
  if (wanted.platform !== undefined && isForPlatform(platform, wanted.platform)) return true
  const repository = fullRepository(wanted.reference)
  return !repoDigests.some(known => fullRepository(known) === repository)
}
