import type { Readable } from 'node:stream'
import type { ContainerRuntime, ImageInfo } from './api.js'
import type { EngineClient } from './engine-client.js'
import { followProgress } from './engine-progress.js'
import type { Footprint } from './footprint.js'
import { checkImage } from './image-reference.js'
import type { Images } from './images.js'
import { loadProblem } from './load-failure.js'
import { LoadFootprint } from './load-footprint.js'
import { problems } from './problems.js'

interface ImageLoadParts {
  readonly engine: EngineClient
  readonly images: Images
  readonly footprints: Set<Footprint>
}

/** See `ContainerRuntime.load`. */
export async function loadImage(
  { engine, images, footprints }: ImageLoadParts,
  archive: Readable,
  { name, owner, onLayer, signal }: Parameters<ContainerRuntime['load']>[1]
): Promise<ImageInfo> {
  checkImage(name)
  const footprint = new LoadFootprint(owner ?? {})
  if (owner !== undefined) footprints.add(footprint)
  // Its errors look like those of the engine's socket, and are not.
  let archiveError: unknown
  archive.once('error', error => {
    archiveError = error
  })
  archive.on('data', (chunk: Buffer) => footprint.take(chunk.length))
  archive.pause()
  try {
    await followProgress(
      engine,
      `load ${name}`,
      signal,
      async docker => {
        // From here on docker-modem ends the request when the archive fails: half of one must not come to its end.
        if (archiveError !== undefined) throw archiveError
        return await docker.loadImage(archive, { quiet: false, abortSignal: signal })
      },
      loadProblem,
      event => {
        if (footprint.read(event)) onLayer?.()
      }
    )
    const loaded = await images.find(name)
    if (loaded === undefined) throw problems.imageArchive({ reason: 'it names another image' })
    return loaded
  } catch (error) {
    signal.throwIfAborted()
    throw archiveError ?? error
  } finally {
    footprints.delete(footprint)
    archive.destroy()
  }
}
