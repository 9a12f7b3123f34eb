import type { ContainerRuntime, ImageInfo, Owner, RegistryAuth } from 'busbar/api/runtime-docker'
import type { BuildContext } from '../api.js'
import { problems } from '../problems.js'
import { chainIds } from './layer-chain.js'
import { findByName, fullRepository, isSameName } from './local-image.js'
import { type PrivateImages, type PrivatePull, settlePull } from './private-images.js'

/** No application's id. */
const nobody = '00000000-0000-0000-0000-000000000000'

export interface PullParts {
  readonly runtime: Pick<
    ContainerRuntime,
    'image' | 'isStepOfBuild' | 'layersOfNamed' | 'pull' | 'removeImage'
  >
  readonly privateImages: PrivateImages
}

/** What is to be pulled, for which application, and with which account of its registry. */
interface PullRequest {
  readonly name: string
  readonly applicationId: string
  readonly auth?: RegistryAuth
  readonly isBase?: true
  readonly owner?: Owner
}

/**
 * Pulls, and lets the application have what came when that is its own by right. The engine asks a registry for nothing
 * that it holds: a manifest can name any image on it by its id alone, so that it was named proves nothing.
 */
export async function pullJudged(
  parts: PullParts,
  request: PullRequest,
  { log, signal }: BuildContext
): Promise<ImageInfo> {
  const { runtime, privateImages } = parts
  const { applicationId, name, ...options } = request
  const beforeId = (await findByName(runtime, name))?.id ?? null
  const mark: PrivatePull = { name, applicationId, repository: fullRepository(name), beforeId }
  // Not by what the engine says of each layer: it knows them by how they were packed, and downloads those that it has.
  const heldBefore = options.auth === undefined ? new Set<string>() : chainsOf(await runtime.layersOfNamed())
  // Of the lowest layers: the engine asks for what is above the first that it does not hold.
  let heldLayers = 0
  let hasLayers = false
  const pull = async (): Promise<ImageInfo> => {
    const image = await runtime.pull(name, {
      ...options,
      signal,
      onLayer: isHeld => {
        hasLayers = true
        if (isHeld) heldLayers++
      },
      onLine: line => log({ level: 'info', stream: 'stdout', msg: line })
    })
    const isDownloaded = hasLayers && !isNamedByManifest(image)
    const pulls = await pullsInBetween(privateImages, mark, image)
    try {
      await checkOrigin(parts, mark, image, { isDownloaded, pulls })
      // What others pull at this moment the engine hands out as well, and shares it while it is on its way.
      await checkContent(parts, request, image, { isInDoubt: isDownloaded && pulls.length > 0, signal })
    } catch (error) {
      // A name that was there before is somebody else's business.
      if (beforeId !== image.id) await takeNameAway(parts, mark, image, isDownloaded)
      throw error
    }
    const isPrivate = options.auth !== undefined && isBrought(image, hasLayers)
    if (isPrivate) await privateImages.noteLayers(broughtBy(image), applicationId)
    await privateImages.note({
      imageId: image.id,
      applicationId,
      repository: mark.repository,
      isPrivate,
      // Whoever brings it with an account at the same time will note it, and does not take it from others by that.
      isFrom: isDownloaded && pulls.length > 0
    })
    return image
  }
  const broughtBy = ({ layers = [] }: ImageInfo): readonly string[] =>
    chainIds(layers)
      .slice(heldLayers)
      .filter(chain => !heldBefore.has(chain))
  if (options.auth === undefined) return await pull()
  await privateImages.beginPull(mark)
  try {
    return await pull()
  } finally {
    // Without the engine or the database it stays marked, until the next look at what was cut off.
    await settlePull(parts, mark, image =>
      isBrought(image, hasLayers) ? broughtBy(image) : undefined
    ).catch(() => {})
  }
}

/**
 * Where the engine keeps images by the digest of their manifest (containerd), it comes to the layers of what it holds as
 * well: that it does shows nothing then.
 */
const isNamedByManifest = ({ id, repoDigests }: ImageInfo): boolean =>
  repoDigests.some(digest => digest.endsWith(`@${id}`))

/** An image without layers is never seen to come. */
const isBrought = ({ layers = [] }: ImageInfo, hasLayers: boolean): boolean =>
  hasLayers || layers.length === 0

const chainsOf = (layersById: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> =>
  new Set([...layersById.values()].flatMap(chainIds))

/** Pulls of others, with accounts of other repositories, that are under way and may have brought it. */
const pullsInBetween = async (
  privateImages: PrivateImages,
  { applicationId, repository }: PrivatePull,
  { id }: ImageInfo
): Promise<readonly PrivatePull[]> =>
  (await privateImages.pullsOfOthers(applicationId)).filter(
    pull => pull.repository !== repository && pull.beforeId !== id
  )

/** Throws when what a pull has named was built for another application, or may just have come by a pull of another one. */
async function checkOrigin(
  { runtime }: PullParts,
  mark: PrivatePull,
  image: ImageInfo,
  { isDownloaded, pulls }: { readonly isDownloaded: boolean; readonly pulls: readonly PrivatePull[] }
): Promise<void> {
  const { name, applicationId, beforeId } = mark
  if (image.builtFor !== undefined && image.builtFor.applicationId !== applicationId)
    throw problems.imageOfOthers({ image: name })
  if (isDownloaded) return
  // What triggers and other tools have made bears no labels, nor had it a name until now.
  const isBuiltHere =
    image.builtFor === undefined &&
    beforeId !== image.id &&
    !hasOtherName(image, mark) &&
    (await runtime.isStepOfBuild(image.id))
  if (isBuiltHere) throw problems.imageOfOthers({ image: name })
  if (pulls.length === 0) return
  const { repoTags = [], repoDigests } = (await runtime.image(image.id)) ?? image
  const repositories = new Set([...repoTags, ...repoDigests].map(fullRepository))
  if (pulls.some(pull => repositories.has(pull.repository)))
    throw problems.privateImageOfOthers({ image: name, reason: 'it is being pulled at this moment' })
}

/**
 * Throws when the image, or a layer of it, is one that others needed an account for: unless it is from the repository of
 * theirs, or this registry has been seen to have it itself. Comes after the pulls of others were read: one that has
 * ended since has been noted.
 */
async function checkContent(
  { privateImages }: PullParts,
  { name, applicationId, auth }: PullRequest,
  image: ImageInfo,
  { isInDoubt, signal }: { readonly isInDoubt: boolean; readonly signal: AbortSignal }
): Promise<void> {
  const { layers = [] } = image
  const chains = chainIds(layers)
  const isOfOthers = await privateImages.isOfOthers(image.id, applicationId)
  const ofOthers = new Set(await privateImages.layersOfOthers(chains, applicationId))
  if (!isOfOthers && ofOthers.size === 0 && !isInDoubt) return
  if (!(await privateImages.isFrom(image.id, fullRepository(name)))) {
    const wanted = {
      name,
      image,
      hasConfig: isOfOthers,
      layers: isOfOthers || isInDoubt ? layers : layers.filter((_, at) => ofOthers.has(chains[at] ?? '')),
      ...(auth !== undefined && { auth })
    }
    const reason = await privateImages.proof(wanted, signal)
    if (reason !== undefined)
      throw (isOfOthers ? problems.privateImageOfOthers : problems.layersNotShown)({ image: name, reason })
  }
  await privateImages.noteLayers([...ofOthers], auth === undefined ? null : applicationId)
}

/** Whether it was named before by anybody but this pull. */
const hasOtherName = (
  { repoTags = [], repoDigests }: ImageInfo,
  { name, repository }: PrivatePull
): boolean =>
  repoTags.some(tag => !isSameName(tag, name)) ||
  repoDigests.some(digest => fullRepository(digest) !== repository)

/** With its last name an image goes, and nobody's build cache is to go by a pull. What is left with it is nobody's. */
async function takeNameAway(
  { runtime, privateImages }: PullParts,
  mark: PrivatePull,
  image: ImageInfo,
  isDownloaded: boolean
): Promise<void> {
  const { name, applicationId } = mark
  const mayGo = isDownloaded || hasOtherName(image, mark) || image.builtFor?.applicationId === applicationId
  const note = async (): Promise<void> =>
    await privateImages.note({
      imageId: image.id,
      applicationId: image.builtFor?.applicationId ?? nobody,
      repository: null,
      isPrivate: true
    })
  await (mayGo ? runtime.removeImage(name) : note()).catch(() => {})
}

/**
 * True when a name means something that was pulled by it, and has layers that are to be shown first; without the name,
 * something that was pulled at all.
 */
export async function hasLayersOfOthers(
  privateImages: PrivateImages,
  { repoDigests, layers = [] }: ImageInfo,
  { applicationId, name }: { readonly applicationId: string; readonly name?: string }
): Promise<boolean> {
  const isPulled = repoDigests.some(
    digest => name === undefined || fullRepository(digest) === fullRepository(name)
  )
  return isPulled && (await privateImages.layersOfOthers(chainIds(layers), applicationId)).length > 0
}
