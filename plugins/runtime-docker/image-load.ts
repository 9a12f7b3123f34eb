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
  // What is half an archive must not come to its end: the engine takes it apart only then.
  const broken = new AbortController()
  archive.once('error', error => broken.abort(error))
  archive.on('data', (chunk: Buffer) => footprint.take(chunk.length))
  archive.pause()
  const running = AbortSignal.any([signal, broken.signal])
  try {
    await followProgress(
      engine,
      `load ${name}`,
      running,
      async docker => await docker.loadImage(archive, { quiet: false, abortSignal: running }),
      loadProblem,
      event => {
        if (footprint.read(event)) onLayer?.()
      }
    )
    const loaded = await images.find(name)
    if (loaded === undefined) throw problems.imageArchive({ reason: 'it names another image' })
    return loaded
  } finally {
    footprints.delete(footprint)
    archive.destroy()
  }
}
