import type { Readable } from 'node:stream'
import type { ImageInfo, ImageService } from 'busbar/api/images'
import { type Clock, isProblem, type Log, pause } from 'busbar/sdk'
import type { BuildContext } from '../api.js'
import type { Unpacked } from '../context/tar-meter.js'
import type { ImageRoom, Reservation } from '../disk/image-room.js'
import { problems } from '../problems.js'
import type { RemoteImage } from './client/index.js'
import type { RegistryAuth } from './client/registry-reader.js'
import { type FetchClaim, withClaim } from './fetch-claim.js'
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
  readonly imageService: Pick<ImageService, 'image' | 'load' | 'removeImage' | 'continuedImages'>
  readonly registries: Registries
  readonly fetched: FetchedImages
  readonly room: Pick<ImageRoom, 'reserve'>
  readonly clock: Pick<Clock, 'now' | 'elapsed' | 'sleep'>
  readonly log: Log
}

/** What is to be fetched, for which application, and with which account of its registry. */
export interface FetchRequest {
  readonly name: string
  readonly applicationId: string
  readonly deploymentId: string
  readonly auth?: RegistryAuth
  /** For a build, whose application has no account of its own, and which is measured by itself. */
  readonly isBase?: true
}

/** An image on the engine, and whose it is. */
export interface HeldImage {
  readonly fetched: FetchedImage
  readonly image: ImageInfo
}

/**
 * Brings an image from its registry to the engine, under a name that only the platform knows. The engine itself asks no registry: it
 * would take whatever it holds for handed out. Here each layer comes to the last byte, but for those of images that the application
 * was handed before; and what came cannot be used until it is found to be what was asked for.
 */
export async function fetchImage(
  parts: FetchParts,
  request: FetchRequest,
  context: BuildContext
): Promise<HeldImage> {
  const { registries, fetched } = parts
  const { name, applicationId, deploymentId, auth, isBase } = request
  const holder = auth === undefined ? everybody : applicationId
  const askedAt = parts.clock.now()
  const remote = await registries.offer(
    { name, ...(auth !== undefined && { auth }), ...(isBase !== undefined && { isBase }) },
    context.signal
  )
  const repository = fullRepository(name)
  const purpose: Purpose = isBase === true ? 'base' : 'container'
  await untilEngineIsDone(parts, request, context)
  for (let attempt = 1; ; attempt++) {
    const found = { holder, repository, digest: remote.digest, layers: layersOf(remote) }
    const result = await withClaim(parts, { ...found, applicationId }, async claim => {
      const { id: fetchId, handle } = claim.begun
      await untilRemoved(parts, handle, context)
      const image = await bring(parts, { request, remote, holder, claim }, context)
      const held = { ...found, handle }
      await fetched.settle(held, { fetchId, name, askedAt, applicationId, deploymentId, purpose })
      return { fetched: held, image }
    })
    // A removal that had begun before may have taken it, if it was held up; from here on none begins.
    if ((await parts.imageService.image(result.fetched.handle)) !== undefined || attempt === 2) return result
  }
}

const lookAgainMs = 1000

/** What an application has handed to the engine and given up may fill the disk yet: it hands over nothing more meanwhile. */
async function untilEngineIsDone(
  { fetched, clock }: FetchParts,
  { name, applicationId }: FetchRequest,
  { log, signal }: BuildContext
): Promise<void> {
  for (let isTold = false; await fetched.isLoading(applicationId); isTold = true) {
    const msg = `${name} waits until the engine is done with what an earlier deploy, which was stopped, has handed to it.`
    if (!isTold) log({ level: 'info', msg })
    await pause(clock, lookAgainMs, signal)
    signal.throwIfAborted()
  }
}

const removalLookMs = 200

/** What is on its way from the engine is seen there, and gone a moment later. No other removal begins once it is claimed. */
async function untilRemoved(
  { fetched, clock }: FetchParts,
  handle: string,
  { signal }: BuildContext
): Promise<void> {
  while (await fetched.isBeingRemoved(handle)) {
    await pause(clock, removalLookMs, signal)
    signal.throwIfAborted()
  }
}

interface Fetch {
  readonly request: FetchRequest
  readonly remote: OfferedImage
  readonly holder: Holder
  readonly claim: FetchClaim
}

async function bring(parts: FetchParts, fetch: Fetch, context: BuildContext): Promise<ImageInfo> {
  const { imageService } = parts
  const { remote, holder } = fetch
  const { handle } = fetch.claim.begun
  const present = await imageService.image(handle)
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
  { imageService, room }: FetchParts,
  { request: { name, applicationId, deploymentId, isBase }, remote, claim }: Fetch,
  held: number,
  { log, signal }: BuildContext
): Promise<ImageInfo> {
  const progress = new FetchProgress(remote.layers.length, held, msg =>
    log({ level: 'info', stream: 'stdout', msg })
  )
  const { handle } = claim.begun
  let reserved: Reservation | undefined
  const archive = imageArchive({
    ...remote,
    name: handle,
    layers: remote.layers.map((layer, at) =>
      at < held ? layer : { ...layer, open: () => progress.counted(remote.open(layer)) }
    ),
    beforeEnd: async () => {
      reserved = await room.reserve({ image: name, deploymentId }, unpackedSize(name, remote), signal)
      claim.isUnheard = true
    }
  })
  let image: ImageInfo | undefined
  try {
    image = await imageService.load(archive, {
      name: handle,
      ...(isBase !== true && { owner: { applicationId, deploymentId } }),
      signal,
      onLayer: () => progress.layer(),
      onAbandoned: ended => {
        claim.ended = ended
      }
    })
    claim.isUnheard = false
  } catch (error) {
    // What it refuses it says.
    if (!signal.aborted && isProblem(error) && error.code !== 'E_ENGINE_UNREACHABLE') claim.isUnheard = false
    throw error
  } finally {
    const { ended } = claim
    // The engine has reported its end, unless its client is gone.
    if (ended === undefined) reserved?.end(!signal.aborted)
    else
      void ended.then(
        () => reserved?.end(true),
        () => reserved?.end(false)
      )
  }
  // The engine reads the same configuration with a reader of its own.
  if (isSame(image.layers, layersOf(remote))) return image
  throw problems.imageUnlike({ image: name })
}

function unpackedSize(image: string, { unpacked }: OfferedImage): Unpacked {
  const { fault, ...size } = unpacked()
  if (fault === undefined) return size
  throw fault === 'sparse' ? problems.imageSparse({ image }) : problems.imageUnclear({ image })
}

/** How many layers, the lowest first, the engine holds in an image that the holder was handed. */
async function heldLayers(
  { imageService, fetched }: FetchParts,
  layers: readonly string[],
  holder: Holder
): Promise<number> {
  const candidates = (await fetched.withFirstLayer(holder, layers[0] ?? ''))
    .map(({ handle, layers: known }) => ({ handle, shared: sharedLayers(known, layers) }))
    .sort((a, b) => b.shared - a.shared)
  for (const { handle, shared } of candidates)
    if ((await imageService.image(handle)) !== undefined) return shared
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
