import type { ImageService } from 'busbar/api/images'
import { bounded, type Contributions } from 'busbar/sdk'
import type { CachedImages } from '../api.js'
import type { ImageClaims } from '../registry/image-claims.js'
import { type RemovalParts, removeUnusedImages } from '../registry/image-removal.js'

interface UnclaimedParts extends RemovalParts {
  readonly imageService: RemovalParts['imageService'] & Pick<ImageService, 'clearBuildCache' | 'images'>
  readonly claims: Pick<ImageClaims, 'renew' | 'elsewhere'>
  readonly cachedImages: Contributions<CachedImages>
}

const tagsMs = 5000

/**
 * For a disk that is short: removes what is only a cache. First the images of deployments that failed, then the steps of
 * builds that have ended, as they hold the bases upon which they were made, then fetched images; nothing that is needed by
 * what is under way, or kept for applications.
 */
export async function removeUnclaimed(parts: UnclaimedParts): Promise<void> {
  const { claims, imageService, log } = parts
  // A process that was held up has not said so for a while.
  await claims.renew()
  // The image service knows what builds of this process go on from, and not what those of others do.
  const applications = await claims.elsewhere()
  await removeCachedImages(parts)
  await imageService
    .clearBuildCache({}, { ends: [], newest: 0, after: new Date(0), applications })
    .catch((error: unknown) => log.debug({ err: error }, 'steps of ended builds stay for now'))
  await removeUnusedImages(parts, { isShort: true })
}

async function removeCachedImages({ cachedImages, imageService, log }: UnclaimedParts): Promise<void> {
  for (const { value, plugin } of cachedImages.entries())
    try {
      const tags = await bounded(async () => await value.tags(), {
        ms: tagsMs,
        what: `the plugin "${plugin}", asked for images that are only a cache,`
      })
      // Asked for one by one, those that went long ago would be a call each in every round.
      const there = tags.length === 0 ? new Set() : await builtTags(imageService)
      for (const tag of tags.filter(one => there.has(one)))
        await imageService
          .removeImage(tag)
          .catch((error: unknown) => log.debug({ err: error, tag }, 'an image stays for now'))
    } catch (error) {
      log.debug({ err: error }, 'images of deployments that failed stay for now')
    }
}

const builtTags = async (imageService: Pick<ImageService, 'images'>): Promise<ReadonlySet<string>> =>
  new Set((await imageService.images({})).flatMap(({ tags }) => tags))
