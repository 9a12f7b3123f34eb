import type { BuildContext } from '../api.js'
import { problems } from '../problems.js'
import { type ResolverParts, resolveImage } from '../registry/image-resolver.js'
import { findByName } from '../registry/local-image.js'

/**
 * Refuses images of this machine that are there for other applications only: a program that builds with them asks
 * nobody. What an account was needed for is asked of its registry again, as everybody may; what the engine does not
 * hold is for the program to get.
 */
export async function checkToolImages(
  references: readonly string[],
  applicationId: string,
  parts: ResolverParts,
  context: BuildContext
): Promise<void> {
  for (const reference of references) {
    if (/^(?:sha256:)?[0-9a-f]+$/.test(reference))
      throw problems.badImageName({ image: reference.slice(0, 200) })
    if ((await findByName(parts.runtime, reference)) !== undefined)
      await resolveImage(parts, { reference, applicationId }, context)
  }
}
