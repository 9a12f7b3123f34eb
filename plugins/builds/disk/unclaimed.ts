import type { ImageService } from 'busbar/api/images'
import type { ImageClaims } from '../registry/image-claims.js'
import { type RemovalParts, removeUnusedImages } from '../registry/image-removal.js'

interface UnclaimedParts extends RemovalParts {
  readonly imageService: RemovalParts['imageService'] & Pick<ImageService, 'clearBuildCache'>
  readonly claims: Pick<ImageClaims, 'renew' | 'elsewhere'>
}

/**
 * For a disk that is short: removes what is only a cache. First the steps of builds that have ended, as they hold the bases
 * upon which they were made, then fetched images; nothing that is needed by what is under way, or kept for applications.
 */
export async function removeUnclaimed(parts: UnclaimedParts): Promise<void> {
  const { claims, imageService, log } = parts
  // A process that was held up has not said so for a while.
  await claims.renew()
  // The image service knows what builds of this process go on from, and not what those of others do.
  const applications = await claims.elsewhere()
  await imageService
    .clearBuildCache({}, { ends: [], newest: 0, after: new Date(0), applications })
    .catch((error: unknown) => log.debug({ err: error }, 'steps of ended builds stay for now'))
  await removeUnusedImages(parts, { isShort: true })
}
