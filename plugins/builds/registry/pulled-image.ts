import { type ImageInfo, type RegistryAuth, registryAwayCodes } from 'busbar/api/runtime-docker'
import { isProblem } from 'busbar/sdk'
import type { BuildContext, PreparedImage } from '../api.js'
import { problems } from '../problems.js'
import { hasLayersOfOthers, type PullParts, pullJudged } from './judged-pull.js'
import { findByName, fullRepository } from './local-image.js'

/** What is to be pulled, for which application, and with which account of its registry. */
export interface ImageSource {
  readonly image: string
  readonly applicationId: string
  readonly deploymentId: string
  readonly auth?: RegistryAuth
}

/** Pulls an image and pins it, so that a rollback runs the same bytes whatever its tag has come to mean. */
export async function pullImage(
  parts: PullParts,
  source: ImageSource,
  context: BuildContext
): Promise<PreparedImage> {
  const { image: name, auth } = source
  context.log({
    level: 'info',
    msg: auth === undefined ? `Pulling ${name}` : `Pulling ${name} as ${auth.username}`
  })
  const image = await pullOrFind(parts, source, context)
  if (image.foreignPlatform !== undefined) {
    context.log({
      level: 'warning',
      msg: `The image is made for ${image.foreignPlatform}, and this machine is of another kind: it will hardly start.`
    })
  }
  const reference = pinnedReference(name, image)
  context.log({ level: 'info', msg: `Using ${reference}` })
  return { reference, image }
}

async function pullOrFind(
  { runtime, privateImages }: PullParts,
  source: ImageSource,
  context: BuildContext
): Promise<ImageInfo> {
  const { image: name, applicationId, deploymentId, auth } = source
  try {
    return await pullJudged(
      { runtime, privateImages },
      { name, applicationId, owner: { applicationId, deploymentId }, ...(auth !== undefined && { auth }) },
      context
    )
  } catch (error) {
    if (!isProblem(error) || !registryAwayCodes.includes(error.code)) throw error
    const local = await findByName(runtime, name)
    if (local === undefined) throw error
    // Without a registry in between, a name could reach what was built for somebody else.
    if (local.builtFor !== undefined && local.builtFor.applicationId !== applicationId)
      throw problems.imageOfOthers({ image: name })
    if (await privateImages.isBeingPulled(name, local.id, applicationId)) throw error
    if (await privateImages.isOfOthers(local.id, applicationId)) throw error
    if (await hasLayersOfOthers(privateImages, local, { applicationId, name })) throw error
    context.log({
      level: 'warning',
      msg: `${error.message}. The image of that name on this machine is used as it is.`
    })
    return local
  }
}

/** `name@sha256:…` of the repository it was pulled from; an image that came from no registry has only its id. */
export function pinnedReference(name: string, image: ImageInfo): string {
  const repository = fullRepository(name)
  return image.repoDigests.find(digest => fullRepository(digest) === repository) ?? image.id
}
