import type { Readable } from 'node:stream'
import type { ImageInfo, LoadOptions } from 'busbar/api/images'
import { type Clock, withTimeLimit } from 'busbar/sdk'
import type { EngineClient } from './engine-client.js'
import { followProgress } from './engine-progress.js'
import type { Footprint } from './footprint.js'
import { checkImage } from './image-reference.js'
import type { Images } from './images.js'
import { loadProblem } from './load-failure.js'
import { LoadFootprint } from './load-footprint.js'
import { problems } from './problems.js'

interface ImageLoadParts {
  readonly clock: Pick<Clock, 'sleep'>
  readonly engine: EngineClient
  readonly images: Images
  readonly footprints: Set<Footprint>
}

/** An engine that takes longer has failed; an image that it still makes is found by a later cleanup. */
const longestAfterMs = 30 * 60_000

/** See `ImageService.load`. */
export async function loadImage(
  { engine, images, footprints, clock }: ImageLoadParts,
  archive: Readable,
  { name, owner, onLayer, onAbandoned, signal }: LoadOptions
): Promise<ImageInfo> {
  checkImage(name)
  signal.throwIfAborted()
  const footprint = new LoadFootprint(owner ?? {})
  if (owner !== undefined) footprints.add(footprint)
  // Its errors look like those of the engine's socket, and are not.
  let archiveError: unknown
  let isWhole = false
  archive.once('error', error => {
    archiveError = error
  })
  archive.once('end', () => {
    isWhole = true
  })
  archive.on('data', (chunk: Buffer) => footprint.take(chunk.length))
  archive.pause()
  const hangUp = new AbortController()
  let isRefused = false
  const taking = followProgress(
    engine,
    `load ${name}`,
    hangUp.signal,
    async docker => {
      // From here on docker-modem ends the request when the archive fails: half of one must not come to its end.
      if (archiveError !== undefined) throw archiveError
      return await docker.loadImage(archive, { quiet: false, abortSignal: hangUp.signal })
    },
    words => {
      isRefused = true
      return loadProblem(words)
    },
    event => {
      if (!signal.aborted && footprint.read(event)) onLayer?.()
    }
  )
  const itsEnd = async (limit: AbortSignal): Promise<void> => {
    limit.addEventListener('abort', () => hangUp.abort(limit.reason))
    await taking.catch((error: unknown) => {
      if (!isRefused) throw error
    })
  }
  let giveUp = (): void => {}
  const isGivenUp = new Promise<void>(resolve => {
    giveUp = resolve
  })
  const onAbort = (): void => {
    if (!isWhole || onAbandoned === undefined) {
      hangUp.abort(signal.reason)
      return
    }
    const reason = (): Error =>
      new Error(`the Docker Engine did not end loading ${name} within ${longestAfterMs / 60_000} minutes`)
    onAbandoned(withTimeLimit({ ms: longestAfterMs, clock, reason }, itsEnd))
    giveUp()
  }
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await Promise.race([taking, isGivenUp])
    signal.throwIfAborted()
    const loaded = await images.find(name)
    if (loaded === undefined) throw problems.imageArchive({ reason: 'it names another image' })
    return loaded
  } catch (error) {
    signal.throwIfAborted()
    throw archiveError ?? error
  } finally {
    signal.removeEventListener('abort', onAbort)
    footprints.delete(footprint)
    archive.destroy()
  }
}
