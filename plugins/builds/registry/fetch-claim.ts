import { type Clock, pause } from 'busbar/sdk'
import { type BegunFetch, type FetchedImages, renewEveryMs } from './fetched-images.js'
import { type RemovalParts, removeUnusedImages } from './image-removal.js'

interface ClaimParts extends RemovalParts {
  readonly fetched: FetchedImages
  readonly clock: Pick<Clock, 'sleep'>
}

/** A fetch that is under way, and how far the engine has come with it. */
export interface FetchClaim {
  readonly begun: BegunFetch
  /** The engine was given the last bytes, and has not said yet what has come of them. */
  isUnheard: boolean
  /** The engine goes on with it although the fetch was cut off: see `ImageService.load`. */
  ended?: Promise<void>
}

/**
 * Runs a fetch that settles what it has brought. While it runs, nothing removes that; what a fetch that fails has brought, or
 * will bring, is removed as soon as it is there.
 */
export async function withClaim<T>(
  parts: ClaimParts,
  wanted: Parameters<FetchedImages['begin']>[0],
  run: (claim: FetchClaim) => Promise<T>
): Promise<T> {
  const { fetched, log } = parts
  const claim: FetchClaim = { begun: await fetched.begin(wanted), isUnheard: false }
  const over = new AbortController()
  void keepClaimed(parts, claim, over.signal)
  try {
    const result = await run(claim)
    over.abort()
    return result
  } catch (error) {
    const stays = (failure: unknown): void =>
      log.debug({ err: failure }, 'what a fetch has left stays for now')
    // Before it fails: the next fetch of the application looks for it.
    if (claim.ended !== undefined) await fetched.abandon(claim.begun.id).catch(stays)
    // Not waited for: the reason of the failure is to be reported first. What stays here is found when the claim has lapsed.
    void release(parts, claim)
      .catch(stays)
      .finally(() => over.abort())
    throw error
  }
}

async function keepClaimed({ fetched, clock, log }: ClaimParts, { begun }: FetchClaim, over: AbortSignal) {
  for (;;) {
    await pause(clock, renewEveryMs, over)
    if (over.aborted) return
    await fetched
      .renew(begun.id)
      .catch((error: unknown) => log.debug({ err: error }, 'a fetch could not renew its claim'))
  }
}

async function release(parts: ClaimParts, { begun: { id }, isUnheard, ended }: FetchClaim): Promise<void> {
  const { fetched } = parts
  if (ended !== undefined) await ended
  else if (isUnheard) return
  await fetched.ended(id)
  await removeUnusedImages(parts)
}
