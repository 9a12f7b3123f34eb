import type { ImageService } from 'busbar/api/images'
import type { Log } from 'busbar/sdk'
import { amount } from '../admission/admission-words.js'
import { problems } from '../problems.js'
import type { ImageClaims } from '../registry/image-claims.js'
import type { DiskWatch } from './disk-watch.js'
import { largestHolder } from './largest-holder.js'

interface DisputeParts {
  readonly claims: Pick<ImageClaims, 'holdings'>
  readonly diskWatch: Pick<DiskWatch, 'writtenBy' | 'end'>
  readonly imageService: Pick<ImageService, 'image'>
  readonly log: Log
}

/**
 * For an image that has waited long for room: ends the deployment that keeps most of it, of another owner, so that
 * a build that does nothing does not keep the builds of others from the disk. False where none of this process is to end.
 */
export async function endLargestHolder(
  { claims, diskWatch, imageService, log }: DisputeParts,
  wanted: { readonly deploymentId: string; readonly bytes: number }
): Promise<boolean> {
  const holdings = (await claims.holdings()).map(holding => ({
    ...holding,
    writtenBytes: diskWatch.writtenBy(holding.deploymentId)
  }))
  const handles = [...new Set(holdings.flatMap(holding => holding.handles))]
  const sizes = new Map(
    await Promise.all(
      handles.map(async handle => [handle, (await imageService.image(handle))?.sizeBytes ?? 0] as const)
    )
  )
  const largest = largestHolder(holdings, wanted, sizes)
  if (largest === undefined) return false
  const held = amount(largest.ownerBytes)
  log.warn(
    { deploymentId: largest.deploymentId, for: wanted.deploymentId },
    `a deployment is stopped to make room for that of another owner: those of its owner hold ${held} of the disk`
  )
  return diskWatch.end(largest.deploymentId, problems.roomDisputed({ held }))
}
