import type { Readable } from 'node:stream'
import type { ContainerRuntime, ImageInfo, Owner, RegistryAuth } from 'busbar/api/runtime-docker'
import { type Clock, isProblem } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import type { Unpacked } from '../context/tar-meter.js'
import type { ImageRoom, Reservation } from '../disk/image-room.js'
import { problems } from '../problems.js'
import type { RemoteImage } from './client/index.js'
import {
  everybody,
  type FetchedImage,
  type FetchedImages,
  type Holder,
  type Purpose
} from './fetched-images.js'
import { imageArchive } from './image-archive.js'
import { fullRepository } from './local-image.js'
import type { OfferedImage, Registries } from './registries.js'

export interface FetchParts {
  readonly runtime: Pick<ContainerRuntime, 'image' | 'load' | 'removeImage'>
  readonly registries: Registries
  readonly fetched: FetchedImages
  readonly room: Pick<ImageRoom, 'reserve'>
  readonly clock: Pick<Clock, 'now'>
}

/** What is to be fetched, for which application, and with which account of its registry. */
interface FetchRequest {
  readonly name: string
  readonly applicationId: string
  readonly auth?: RegistryAuth
  /** For a build, which has no account. */
  readonly isBase?: true
  readonly owner?: Owner
}

/** An image on the engine, and whose it is. */
interface HeldImage {
  readonly fetched: FetchedImage
  readonly image: ImageInfo
}

/**
 * Brings an image from its registry to the engine, under a name that nobody else knows. The engine itself asks no registry: it
 * would take whatever it holds for handed out. Here each layer comes to the last byte, but for those of images that whoever this is
 * for was handed before; and nobody can use what came until it is found to be what was asked for.
 */
export async function fetchImage(
  parts: FetchParts,
  request: FetchRequest,
  context: BuildContext
): Promise<HeldImage> {
  const { registries, fetched } = parts
  const { name, applicationId, auth, isBase } = request
  const holder = auth === undefined ? everybody : applicationId
  const askedAt = parts.clock.now()
  const remote = await registries.offer(
    { name, ...(auth !== undefined && { auth }), ...(isBase !== undefined && { isBase }) },
    context.signal
  )
  const repository = fullRepository(name)
  const purpose: Purpose = isBase === true ? 'base' : 'container'
  for (let attempt = 1; ; attempt++) {
    const handle = await fetched.begin({ holder, repository, digest: remote.digest })
    const image = await bring(parts, { request, remote, holder, handle }, context)
    const found = { holder, repository, digest: remote.digest, handle, layers: layersOf(remote) }
    await fetched.settle(found, { name, askedAt, applicationId, purpose })
    // A removal that had begun before may have taken it; from here on none begins.
    if ((await parts.runtime.image(handle)) !== undefined || attempt === 2) return { fetched: found, image }
  }
}

interface Fetch {
  readonly request: FetchRequest
  readonly remote: OfferedImage
  readonly holder: Holder
  readonly handle: string
}

async function bring(parts: FetchParts, fetch: Fetch, context: BuildContext): Promise<ImageInfo> {
  const { runtime } = parts
  const { remote, holder, handle } = fetch
  const present = await runtime.image(handle)
  if (present !== undefined && isSame(present.layers, layersOf(remote))) return present
  const held = await heldLayers(parts, layersOf(remote), holder)
  try {
    return await load(parts, fetch, held, context)
  } catch (error) {
    // Removed meanwhile, or an engine that keeps layers with their images only.
    if (held === 0 || !isProblem(error) || error.code !== 'E_IMAGE_INCOMPLETE') throw error
    return await load(parts, fetch, 0, context)
  }
}

async function load(
  { runtime, room }: FetchParts,
  { request: { name, owner }, remote, handle }: Fetch,
  held: number,
  { log, signal }: BuildContext
): Promise<ImageInfo> {
  const progress = new FetchProgress(remote.layers.length, held, msg =>
    log({ level: 'info', stream: 'stdout', msg })
  )
  let reserved: Reservation | undefined
  const archive = imageArchive({
    ...remote,
    name: handle,
    layers: remote.layers.map((layer, at) =>
      at < held ? layer : { ...layer, open: () => progress.counted(remote.open(layer)) }
    ),
    beforeEnd: async () => {
      reserved = await room.reserve(name, unpackedSize(name, remote), signal)
    }
  })
  let image: ImageInfo | undefined
  try {
    image = await runtime.load(archive, { name: handle, owner, signal, onLayer: () => progress.layer() })
  } finally {
    // It has ended by its own word, unless nobody listens any more.
    reserved?.end(!signal.aborted)
  }
  // The engine reads the same configuration with a reader of its own.
  if (isSame(image.layers, layersOf(remote))) return image
  // Where it cannot go now, it goes by its name later: nothing is noted of it.
  await runtime.removeImage(handle).catch(() => undefined)
  throw problems.imageUnlike({ image: name })
}

function unpackedSize(image: string, { unpacked }: OfferedImage): Unpacked {
  const { fault, ...size } = unpacked()
  if (fault === undefined) return size
  throw fault === 'sparse' ? problems.imageSparse({ image }) : problems.imageUnclear({ image })
}

/** How many layers, the lowest first, the engine holds in an image that the holder was handed. */
async function heldLayers(
  { runtime, fetched }: FetchParts,
  layers: readonly string[],
  holder: Holder
): Promise<number> {
  const candidates = (await fetched.withFirstLayer(holder, layers[0] ?? ''))
    .map(({ handle, layers: known }) => ({ handle, shared: sharedLayers(known, layers) }))
    .sort((a, b) => b.shared - a.shared)
  for (const { handle, shared } of candidates) if ((await runtime.image(handle)) !== undefined) return shared
  return 0
}

function sharedLayers(known: readonly string[], layers: readonly string[]): number {
  const different = layers.findIndex((layer, at) => known[at] !== layer)
  return different < 0 ? layers.length : different
}

const layersOf = ({ layers }: RemoteImage): readonly string[] => layers.map(({ diffId }) => diffId)

const isSame = (some: readonly string[] = [], others: readonly string[]): boolean =>
  some.length === others.length && sharedLayers(some, others) === others.length

const stepBytes = 32 * 1024 * 1024

/** A line when a layer is there, and one for every 32 MiB that came in between. */
class FetchProgress {
  #downloaded = 0
  #announced = 0

  constructor(
    private readonly total: number,
    private ready: number,
    private readonly onLine: (line: string) => void
  ) {}

  async *counted(stream: Readable): AsyncGenerator<Buffer> {
    for await (const chunk of stream) {
      this.#downloaded += (chunk as Buffer).length
      if (this.#downloaded >= this.#announced + stepBytes) this.#tell()
      yield chunk as Buffer
    }
  }

  layer(): void {
    this.ready++
    this.#tell()
  }

  #tell(): void {
    this.#announced = Math.floor(this.#downloaded / stepBytes) * stepBytes
    const size = this.#downloaded === 0 ? '' : `, ${Math.round(this.#downloaded / 1e6)} MB downloaded`
    this.onLine(`${this.ready} of ${this.total} layers ready${size}`)
  }
}
