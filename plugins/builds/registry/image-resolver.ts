import {
  type ImageInfo,
  type ImageService,
  imageReferenceShape,
  loadedPrefix,
  registryAwayCodes
} from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { isForPlatform } from '../dockerfile/platform.js'
import { problems } from '../problems.js'
import { type AccountParts, fetchForProject, fetchWithAccount } from './account-fetch.js'
import { everybody } from './fetched-images.js'
import type { FormerPrivateImages } from './former-private-images.js'
import type { HeldImage } from './image-fetch.js'
import { builderPrefix } from './image-names.js'
import { findByName, fullRepository, longestReference } from './local-image.js'

export interface ResolverParts extends AccountParts {
  readonly imageService: ImageService
  readonly formerImages: Pick<FormerPrivateImages, 'isOfOthers'>
}

/** An image by name, for a build of an application. */
interface WantedImage {
  readonly reference: string
  /** Whose account its registry is asked with, where it does not hand the image out to everybody. */
  readonly projectId: string
  readonly applicationId: string
  /** Claims it for as long as its image is being prepared. */
  readonly deploymentId: string
  /** `linux/amd64`; absent: the machine's own. What is for another one is the caller's to refuse. */
  readonly platform?: string
}

/** An image, and a name by which the engine knows it. */
interface ResolvedImage {
  readonly name: string
  readonly image: ImageInfo
}

/**
 * What a name stands for now, once it is certain that the application may use it: what an operator has put on the engine
 * under that name, else what its registry hands out to everybody, or to an account that the application may use. Ids are
 * no names: they may be of any application.
 */
export async function resolveImage(
  parts: ResolverParts,
  wanted: WantedImage,
  context: BuildContext
): Promise<ResolvedImage> {
  const { written, named, held, lent } = await look(parts, wanted)
  if (held !== undefined) return held
  try {
    const { fetched, image } = await fetchBase(parts, { ...wanted, name: written, lent }, context)
    return { name: fetched.handle, image }
  } catch (error) {
    if (named === undefined || context.signal.aborted || !isProblem(error)) throw error
    const msg = `${error.message}. The image ${written} on this machine is used as it is, although it is made for ${named.platform}.`
    context.log({ level: 'warning', msg })
    return { name: written, image: named }
  }
}

/** The same, as far as the engine holds it: no registry is asked. */
export const resolveHeldImage = async (
  parts: ResolverParts,
  wanted: WantedImage
): Promise<ResolvedImage | undefined> => (await look(parts, wanted)).held

interface Look {
  readonly written: string
  /** What has the name, whether it is as it is wanted or not. */
  readonly named: ImageInfo | undefined
  /** What may be used without asking. */
  readonly held: ResolvedImage | undefined
  /** What came with an account. */
  readonly lent: HeldImage | undefined
}

async function look(parts: ResolverParts, wanted: WantedImage): Promise<Look> {
  const { applicationId, deploymentId } = wanted
  const { written, digest } = parseName(wanted.reference)
  const named = await findNamed(parts, written, applicationId)
  if (named !== undefined && (digest !== undefined || isAsWanted(named, { ...wanted, reference: written })))
    return { written, named, held: { name: written, image: named }, lent: undefined }
  const fetched = await parts.fetched.find(applicationId, written, 'base', deploymentId)
  const image = fetched === undefined ? undefined : await parts.imageService.image(fetched.handle)
  if (fetched === undefined || image === undefined)
    return { written, named, held: undefined, lent: undefined }
  return fetched.holder === everybody
    ? { written, named, held: { name: fetched.handle, image }, lent: undefined }
    : { written, named, held: undefined, lent: { fetched, image } }
}

/** What came with an account is there for who can use one now. */
async function fetchBase(
  parts: ResolverParts,
  {
    name,
    lent,
    projectId,
    applicationId,
    deploymentId
  }: Omit<WantedImage, 'reference'> & { readonly name: string; readonly lent: HeldImage | undefined },
  context: BuildContext
): Promise<HeldImage> {
  const request = { name, projectId, applicationId, deploymentId, isBase: true } as const
  if (lent === undefined) return await fetchForProject(parts, request, context)
  try {
    // The account may be gone since, and may have lost the right to it: the registry says so, and hands out nothing again.
    return (
      (await fetchWithAccount(parts, request, context)) ?? (await fetchForProject(parts, request, context))
    )
  } catch (error) {
    if (!isProblem(error) || !registryAwayCodes.includes(error.code)) throw error
    if ((await parts.accounts.find(request, name)) === undefined) throw error
    const msg = `${error.message}. What it was handed out as last is used.`
    context.log({ level: 'warning', msg })
    return lent
  }
}

/** With its tag written out, the engine cannot take a name for the beginning of an id. */
function parseName(reference: string): { readonly written: string; readonly digest: string | undefined } {
  const { name, digest, tag } =
    (reference.length <= longestReference ? imageReferenceShape.exec(reference)?.groups : undefined) ?? {}
  const last = name?.slice(name.lastIndexOf('/') + 1) ?? 'sha256'
  if (last === 'sha256' || isOurs(reference)) throw problems.badImageName({ image: reference.slice(0, 200) })
  return { written: digest === undefined && tag === undefined ? `${reference}:latest` : reference, digest }
}

const isOurs = (name: string): boolean => {
  const last = name.slice(name.lastIndexOf('/') + 1)
  return last.startsWith(builderPrefix) || last.startsWith(loadedPrefix)
}

/**
 * What the engine holds under a name. Nothing that the platform does for a tenant names an image by a word of theirs, so the name
 * is an operator's, or that of an application's own build.
 */
export async function findNamed(
  {
    imageService,
    formerImages
  }: Pick<ResolverParts, 'formerImages'> & { readonly imageService: Pick<ImageService, 'image'> },
  name: string,
  applicationId: string
): Promise<ImageInfo | undefined> {
  if (isOurs(name)) throw problems.badImageName({ image: name })
  const named = await findByName(imageService, name)
  if (named?.builtFor !== undefined && named.builtFor.applicationId !== applicationId)
    throw problems.imageOfOthers({ image: name })
  return named !== undefined && (await formerImages.isOfOthers(named.id, applicationId)) ? undefined : named
}

/** A name with its tag written out, once it is certain that what the engine holds under it is no other application's. */
export async function checkName(
  parts: Pick<ResolverParts, 'formerImages' | 'imageService'>,
  reference: string,
  applicationId: string
): Promise<string> {
  const { written } = parseName(reference)
  await findNamed(parts, written, applicationId)
  return written
}

/** Throws unless the application may use the image with this id. */
export async function checkImageId(
  { imageService, fetched, formerImages }: ResolverParts,
  id: string,
  { applicationId, deploymentId }: Pick<WantedImage, 'applicationId' | 'deploymentId'>
): Promise<void> {
  const image = await imageService.image(id)
  // What does not exist and what belongs to another application read alike.
  const refusal = problems.imageOfOthers({ image: id.slice(0, 19) })
  if (image === undefined || (await formerImages.isOfOthers(image.id, applicationId))) throw refusal
  const names = image.repoTags ?? []
  if (await fetched.isOpenTo(applicationId, names, deploymentId)) return
  // What has come from a registry, or is coming, is for whom that has handed it out, whatever its labels say.
  const isFetchedOnly = names.length > 0 && names.every(name => name.startsWith(loadedPrefix))
  const { builtFor } = image
  // Without labels of ours it has the name of an operator's; a step that a build has left has none.
  const isOpen =
    builtFor === undefined
      ? names.some(name => !isOurs(name))
      : !isFetchedOnly && builtFor.applicationId === applicationId
  if (!isOpen) throw refusal
}

/**
 * False when the registry may have another one for this machine: an operator who pulled it by hand for another kind has
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
