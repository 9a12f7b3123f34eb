import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ImageService } from 'busbar/api/images'
import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'

const sweepEveryMs = 3600_000

interface OrphanParts {
  readonly imageService: Pick<ImageService, 'images' | 'removeImage' | 'clearBuildCache'>
  readonly applications: Pick<ApplicationRegistry, 'deployable'>
  readonly log: Log
}

/**
 * Removes what was built for applications that do not exist any more. The engine may make an image of a step after
 * the build was cancelled, after the platform had stopped waiting for it.
 */
export async function removeOrphanedImages({ imageService, applications, log }: OrphanParts): Promise<void> {
  // Listed first: an application is there before anything is built for it.
  const images = await imageService.images({})
  for (const applicationId of new Set(images.flatMap(({ owner }) => owner.applicationId ?? []))) {
    if ((await applications.deployable(applicationId)) !== undefined) continue
    const own = images.filter(({ owner }) => owner.applicationId === applicationId)
    for (const reference of own.flatMap(({ id, tags }) => (tags.length > 0 ? tags : [id])))
      await imageService
        .removeImage(reference)
        .catch((error: unknown) =>
          log.debug({ err: error, applicationId, reference }, 'an orphaned image stays for now')
        )
    await imageService.clearBuildCache({ applicationId })
  }
}

/** Once an hour, for as long as one process lives. */
export async function sweepOrphanedImages(
  { clock, ...parts }: OrphanParts & { readonly clock: Clock },
  signal: AbortSignal
): Promise<void> {
  await runRepeatedly(async () => await removeOrphanedImages(parts), {
    everyMs: sweepEveryMs,
    clock,
    signal,
    onError: error => parts.log.debug({ err: error }, 'orphaned images stay for now')
  })
}
