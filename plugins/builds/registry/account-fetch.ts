import type { BuildContext } from '../api.js'
import { type FetchParts, type FetchRequest, fetchImage, type HeldImage } from './image-fetch.js'
import { isRefused, type PullAccounts, pullingAs } from './pull-accounts.js'

export interface AccountParts extends FetchParts {
  readonly accounts: PullAccounts
}

/** For an application of which project. */
type ProjectRequest = Omit<FetchRequest, 'auth'> & { readonly projectId: string }

/**
 * Fetches an image as everybody may, so that all may use it; where that is refused, with the account that the project or
 * the installation has of its registry, for the application alone.
 */
export async function fetchForProject(
  parts: AccountParts,
  request: ProjectRequest,
  context: BuildContext
): Promise<HeldImage> {
  try {
    return await fetchImage(parts, request, context)
  } catch (error) {
    context.signal.throwIfAborted()
    if (!isRefused(error)) throw error
    const held = await fetchWithAccount(parts, request, context)
    if (held === undefined) throw error
    return held
  }
}

/** Undefined where there is no account of its registry. */
export async function fetchWithAccount(
  parts: AccountParts,
  request: ProjectRequest,
  context: BuildContext
): Promise<HeldImage | undefined> {
  const auth = await parts.accounts.find(request, request.name)
  if (auth === undefined) return undefined
  context.log({ level: 'info', msg: pullingAs(request.name, auth) })
  return await fetchImage(parts, { ...request, auth }, context)
}
