import type { Readable } from 'node:stream'
import type { ImageInfo, LoadOptions } from 'busbar/api/images'
import { type Clock, withTimeLimit } from 'busbar/sdk'
import type { EngineClient } from './engine-client.js'
import { followProgress } from './engine-progress.js'
import type { Footprint } from './footprint.js'
import { type HandoverParts, nameBuilt, unnamedImageIn } from './image-handover.js'
import { checkImage } from './image-reference.js'
import { loadProblem } from './load-failure.js'
import { LoadFootprint } from './load-footprint.js'
import { problems } from './problems.js'

interface ImageLoadParts extends HandoverParts {
  readonly clock: Pick<Clock, 'sleep'>
  readonly engine: EngineClient
  readonly footprints: Set<Footprint>
}

/** An engine that takes longer has failed; an image that it still makes is found by a later cleanup. */
const longestAfterMs = 30 * 60_000

/** See `ImageService.load`. */
export async function loadImage(
  parts: ImageLoadParts,
  archive: Readable,
  { name, builtFor, owner = builtFor, onLayer, onAbandoned, signal }: LoadOptions
): Promise<ImageInfo> {
  const { engine, images, footprints, clock } = parts
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
  let unnamed: string | undefined
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
      unnamed = unnamedImageIn(event) ?? unnamed
      if (!signal.aborted && footprint.read(event)) onLayer?.()
    }
  )
  const discard = async (): Promise<void> => {
    if (builtFor !== undefined && unnamed !== undefined) await images.discard(unnamed).catch(() => undefined)
  }
  const itsEnd = async (limit: AbortSignal): Promise<void> => {
    limit.addEventListener('abort', () => hangUp.abort(limit.reason))
    await taking.catch((error: unknown) => {
      if (!isRefused) throw error
    })
    await discard()
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
    if (builtFor !== undefined) return await nameBuilt(parts, unnamed, { name, owner: builtFor, signal })
    const loaded = await images.find(name)
    if (loaded === undefined) throw problems.imageArchive({ reason: 'it names another image' })
    return loaded
  } catch (error) {
    await discard()
    signal.throwIfAborted()
    throw archiveError ?? error
  } finally {
    signal.removeEventListener('abort', onAbort)
    footprints.delete(footprint)
    archive.destroy()
  }
}
