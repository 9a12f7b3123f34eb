import { type ImageInfo, registryAwayCodes } from 'busbar/api/images'
import { isProblem } from 'busbar/sdk'
import type { BuildContext, PreparedImage } from '../api.js'
import { fetchForProject } from './account-fetch.js'
import type { RegistryAuth } from './client/registry-reader.js'
import { fetchImage } from './image-fetch.js'
import { findNamed, type ResolverParts } from './image-resolver.js'
import { familiarName, fullRepository } from './local-image.js'

/** What is to be fetched, for which application, and with which account of its registry. */
export interface ImageSource {
  readonly image: string
  readonly projectId: string
  readonly applicationId: string
  readonly deploymentId: string
  /** The application's own; absent: that of its project, or of the installation, where one is needed. */
  readonly auth?: RegistryAuth
}

/** Fetches an image and pins it, so that a rollback runs the same bytes whatever its tag has come to mean. */
export async function pullImage(
  parts: ResolverParts,
  source: ImageSource,
  context: BuildContext
): Promise<PreparedImage> {
  const { image: name, auth } = source
  context.log({
    level: 'info',
    msg: auth === undefined ? `Pulling ${name}` : `Pulling ${name} as ${auth.username}`
  })
  const prepared = await fetchOrFind(parts, source, context)
  if (prepared.image.foreignPlatform !== undefined) {
    context.log({
      level: 'warning',
      msg: `The image is made for ${prepared.image.foreignPlatform}, and this machine is of another kind: it will hardly start.`
    })
  }
  context.log({ level: 'info', msg: `Using ${prepared.reference}` })
  return prepared
}

async function fetchOrFind(
  parts: ResolverParts,
  { image: name, projectId, applicationId, deploymentId, auth }: ImageSource,
  context: BuildContext
): Promise<PreparedImage> {
  const request = { name, projectId, applicationId, deploymentId }
  try {
    const { fetched, image } =
      auth === undefined
        ? await fetchForProject(parts, request, context)
        : await fetchImage(parts, { ...request, auth }, context)
    return { reference: pinned(fetched), name: fetched.handle, image }
  } catch (error) {
    if (!isProblem(error) || !registryAwayCodes.includes(error.code)) throw error
    const local = await findLocal(parts, { image: name, projectId, applicationId, deploymentId })
    if (local === undefined) throw error
    context.log({
      level: 'warning',
      msg: `${error.message}. The image of that name on this machine is used as it is.`
    })
    return local
  }
}

/** What an operator has put on the engine under the name, or what was fetched by it before. */
async function findLocal(
  parts: ResolverParts,
  { image: name, applicationId, deploymentId }: ImageSource
): Promise<PreparedImage | undefined> {
  const named = await findNamed(parts, name, applicationId)
  if (named !== undefined) {
    const reference = pinnedReference(name, named)
    return { reference, name: reference, image: named }
  }
  const known = await parts.fetched.find(applicationId, name, 'container', deploymentId)
  const image = known === undefined ? undefined : await parts.imageService.image(known.handle)
  return known === undefined || image === undefined
    ? undefined
    : { reference: pinned(known), name: known.handle, image }
}

/** `name@sha256:…`, as the engine writes it too. */
export const pinned = ({
  repository,
  digest
}: {
  readonly repository: string
  readonly digest: string
}): string => `${familiarName(repository)}@${digest}`

/** `name@sha256:…` of the repository it was pulled from; an image that came from no registry has only its id. */
export function pinnedReference(name: string, image: ImageInfo): string {
  const repository = fullRepository(name)
  return image.repoDigests.find(digest => fullRepository(digest) === repository) ?? image.id
}

/** The image of a deployment by what its record calls it, if it is still there. */
export async function findPinned(
  { imageService, fetched }: Pick<ResolverParts, 'imageService' | 'fetched'>,
  applicationId: string,
  reference: string
): Promise<PreparedImage | undefined> {
  const known = reference.includes('@')
    ? await fetched.find(applicationId, reference, 'container')
    : undefined
  const name = known?.handle ?? reference
  const image = await imageService.image(name)
  return image === undefined ? undefined : { reference, name, image }
}
