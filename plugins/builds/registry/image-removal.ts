import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { FetchedImages } from './fetched-images.js'

const everyMs = 3600_000

interface RemovalParts {
  readonly runtime: Pick<ContainerRuntime, 'removeImage'>
  readonly fetched: Pick<FetchedImages, 'removed' | 'postpone'>
  readonly log: Log
}

interface SweepParts extends RemovalParts {
  readonly fetched: Pick<FetchedImages, 'nextToRemove' | 'removed' | 'postpone'>
}

/** Once an hour: fetched images that nobody needs any more, and those that came while the platform died. */
export async function sweepUnusedImages(
  parts: SweepParts & { readonly clock: Clock },
  signal: AbortSignal
): Promise<void> {
  const { clock, log } = parts
  await runRepeatedly(async () => await removeUnusedImages(parts, signal), {
    everyMs,
    clock,
    signal,
    onError: error => log.debug({ err: error }, 'fetched images that nobody needs could not be removed')
  })
}

export async function removeUnusedImages(parts: SweepParts, signal?: AbortSignal): Promise<void> {
  for (;;) {
    const handle = await parts.fetched.nextToRemove()
    if (handle === undefined || signal?.aborted === true) return
    await removeFetched(parts, handle)
  }
}

/** An image that is in use, or whose engine is away, goes later. */
export async function removeFetched({ runtime, fetched, log }: RemovalParts, handle: string): Promise<void> {
  try {
    await runtime.removeImage(handle)
    await fetched.removed(handle)
  } catch (error) {
    log.debug({ err: error, handle }, 'a fetched image stays for now')
    await fetched.postpone(handle)
  }
}
