import type { ImageInfo } from 'busbar/api/images'
import { isProblem, type Problem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import { everybody } from './fetched-images.js'
import { type ResolverParts, resolveImage } from './image-resolver.js'
import { isRefused } from './pull-accounts.js'

/** A name that may be of an image, in a build of an application. */
interface NamedBase {
  readonly name: string
  readonly projectId: string
  readonly applicationId: string
  readonly deploymentId: string
}

/**
 * What a build engine cannot fetch itself, because its registry hands it out to an account alone. Undefined where the project has none
 * of that registry, or needs none; the problem of a pull that the account did not help with.
 */
export async function findPrivateBase(
  parts: ResolverParts,
  { name, ...puller }: NamedBase,
  context: BuildContext
): Promise<ImageInfo | Problem | undefined> {
  try {
    if ((await parts.accounts.find(puller, name)) === undefined) return undefined
    const known = await parts.fetched.find(puller.applicationId, name, 'base', puller.deploymentId)
    if ((known === undefined || known.holder === everybody) && (await isOpen(parts, name, context)))
      return undefined
    return (await resolveImage(parts, { reference: name, ...puller }, context)).image
  } catch (error) {
    context.signal.throwIfAborted()
    // It may be no name of an image at all: the build engine says what it needs and does not get.
    if (isProblem(error) && /^E_(?:IMAGE|REGISTRY|SOURCE_HOST)_/.test(error.code)) return error
    throw error
  }
}

async function isOpen(
  { registries }: ResolverParts,
  name: string,
  { signal }: BuildContext
): Promise<boolean> {
  try {
    await registries.checkOpen(name, signal)
    return true
  } catch (error) {
    if (isRefused(error)) return false
    throw error
  }
}
