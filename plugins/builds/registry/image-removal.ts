import type { ImageService } from 'busbar/api/images'
import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { FetchedImages } from './fetched-images.js'

const everyMs = 60_000

export interface RemovalParts {
  readonly imageService: Pick<ImageService, 'image' | 'removeImage' | 'continuedImages'>
  readonly fetched: Pick<FetchedImages, 'nextToRemove' | 'removed' | 'stays'>
  readonly log: Log
}

/** Once a minute: unused fetched images, and those that came while the platform died. */
export async function sweepUnusedImages(
  parts: RemovalParts & { readonly clock: Clock },
  signal: AbortSignal
): Promise<void> {
  const { clock, log } = parts
  await runRepeatedly(async () => await removeUnusedImages(parts, { signal }), {
    everyMs,
    clock,
    signal,
    onError: error => log.debug({ err: error }, 'unused fetched images could not be removed')
  })
}

/** One that is in use, or whose engine is away, goes later. `isShort`: no room is left on a disk. */
export async function removeUnusedImages(
  { imageService, fetched, log }: RemovalParts,
  { signal, isShort }: { readonly signal?: AbortSignal; readonly isShort?: boolean } = {}
): Promise<void> {
  const tried: string[] = []
  let continued: ReadonlySet<string> | undefined
  for (;;) {
    if (signal?.aborted === true) return
    const handle = await fetched.nextToRemove({ isShort, tried })
    if (handle === undefined) return
    tried.push(handle)
    try {
      const image = await imageService.image(handle)
      if (image !== undefined) {
        continued ??= await imageService.continuedImages()
        // Without its name it would take the same room, and could not be told from other images.
        if (continued.has(image.id)) {
          await fetched.stays(handle, { isContinued: true })
          continue
        }
        await imageService.removeImage(handle)
      }
      await fetched.removed(handle, { wasThere: image !== undefined })
    } catch (error) {
      log.debug({ err: error, handle }, 'a fetched image stays for now')
      await fetched.stays(handle).catch(() => undefined)
    }
  }
}
