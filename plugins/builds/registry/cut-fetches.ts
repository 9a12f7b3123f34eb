import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { FetchedImages } from './fetched-images.js'

const everyMs = 3600_000

interface Parts {
  readonly runtime: Pick<ContainerRuntime, 'removeImage'>
  readonly fetched: FetchedImages
  readonly clock: Clock
  readonly log: Log
  /** No fetch lasts longer. */
  readonly longestMs: number
}

/** Once an hour: an image that came while the platform died has a name that nobody has noted. */
export async function removeCutFetches(
  { runtime, fetched, clock, log, longestMs }: Parts,
  signal: AbortSignal
): Promise<void> {
  await runRepeatedly(
    async () => {
      for (const handle of await fetched.begunBefore(new Date(clock.now().getTime() - longestMs))) {
        await runtime.removeImage(handle)
        await fetched.forgetFetch(handle)
      }
    },
    {
      everyMs,
      clock,
      signal,
      onError: error => log.debug({ err: error }, 'what cut-off fetches have left could not be removed')
    }
  )
}
