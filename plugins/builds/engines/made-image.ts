import { createHash } from 'node:crypto'
import type { EngineImageLayout } from '../api.js'
import { parseBounded } from '../registry/client/bounded-json.js'
import { maxConfigBytes, readImageConfig } from '../registry/client/image-config.js'
import { provenLayer } from '../registry/client/layer-stream.js'
import { maxManifestBytes, readManifest } from '../registry/client/manifest.js'
import { RegistryFailure } from '../registry/client/registry-failure.js'
import { UnpackBudget } from '../registry/client/unpack-budget.js'
import { BadResult, type ContainerFiles } from './container-files.js'

interface MadeLayer {
  readonly path: string
  readonly size: number
  /** Of its bytes as they lie there; where that is not told, they are not packed, and it is that of the unpacked ones. */
  readonly digest: string
  readonly diffId: string
}

/** An image that a build engine has made. What it says of itself is proven when it is read. */
export interface MadeImage {
  /** With what containers and builds need, and each key once; labels that mean something to a platform are left out. */
  readonly config: Buffer
  /** What it is made for: `linux/amd64`. */
  readonly platform: string
  /** Lowest first. */
  readonly layers: readonly MadeLayer[]
  /** Ends well only when the bytes, and what they unpack to, have the digests of the layer. */
  open(layer: MadeLayer): AsyncIterable<Buffer>
  /** Of the layers that were opened, once they have come to their ends. */
  readonly unpacked: () => UnpackBudget['unpacked']
}

/** As much as an image of a registry. */
const maxImageBytes = 32 * 2 ** 30
const maxLayers = 127

/** Throws a `BadResult` where there is no image, or none that can be understood. */
export async function readMadeImage(
  files: ContainerFiles,
  directory: string,
  layout: EngineImageLayout
): Promise<MadeImage> {
  try {
    const { config, layers } = await (layout === 'layout' ? readLayout : readArchive)(files, directory)
    const sizes = await files.sizesOf(layers.map(({ path }) => path))
    const { platform, diffIds, rewritten } = readImageConfig(config, layers.length)
    const budget = new UnpackBudget(maxImageBytes)
    return {
      config: rewritten,
      platform,
      layers: layers.map(({ path, digest }, at) => ({
        path,
        size: sizes[at] ?? 0,
        diffId: diffIds[at] ?? '',
        digest: digest ?? diffIds[at] ?? ''
      })),
      open: layer => explained(provenLayer(opened(files, layer), layer, budget)),
      unpacked: () => budget.unpacked
    }
  } catch (error) {
    throw asBadResult(error)
  }
}

interface Found {
  readonly config: Buffer
  readonly layers: ReadonlyArray<{ readonly path: string; readonly digest: string | undefined }>
}

async function readLayout(files: ContainerFiles, directory: string): Promise<Found> {
  const blob = (digest: string): string => `${directory}/blobs/sha256/${digest.slice('sha256:'.length)}`
  const proven = async (digest: string, maxBytes: number): Promise<Buffer> => {
    const bytes = await files.read(blob(digest), maxBytes)
    const found = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
    if (found !== digest) throw new BadResult(`${digest} has the digest ${found}`)
    return bytes
  }
  let manifest = readManifest(
    await files.read(`${directory}/index.json`, maxManifestBytes),
    'application/vnd.oci.image.index.v1+json'
  )
  // The index of the layout, and that of an image for several platforms.
  for (let depth = 0; manifest.kind === 'index'; depth++) {
    const images = manifest.entries.filter(
      ({ platform }) => platform === undefined || !platform.startsWith('unknown/')
    )
    const [entry] = images
    if (entry === undefined || images.length > 1 || depth === 2)
      throw new BadResult(`its index names ${images.length} images`)
    manifest = readManifest(await proven(entry.digest, maxManifestBytes), entry.mediaType)
  }
  return {
    config: await proven(manifest.config.digest, maxConfigBytes),
    layers: manifest.layers.map(({ digest }) => ({ path: blob(digest), digest }))
  }
}

async function readArchive(files: ContainerFiles, directory: string): Promise<Found> {
  const manifest: unknown = parseBounded(await files.read(`${directory}/manifest.json`, maxManifestBytes))
  const [image] = Array.isArray(manifest) && manifest.length === 1 ? (manifest as unknown[]) : []
  const { Config: config, Layers: layers } = (
    typeof image === 'object' && image !== null ? image : {}
  ) as Record<string, unknown>
  if (Array.isArray(layers) && layers.length > maxLayers)
    throw new BadResult(`it has ${layers.length} layers, and an image may have ${maxLayers}`)
  if (!isPath(config) || !Array.isArray(layers) || !layers.every(isPath))
    throw new BadResult('its manifest names no image')
  return {
    config: await files.read(`${directory}/${config}`, maxConfigBytes),
    layers: layers.map(path => ({ path: `${directory}/${path}`, digest: undefined }))
  }
}

/** `blobs/sha256/1b2…`, or `1b2…/layer.tar`. */
const isPath = (path: unknown): path is string =>
  typeof path === 'string' && path.length < 300 && path.split('/').every(part => /^\w[\w.-]*$/.test(part))

async function* opened(
  files: ContainerFiles,
  { path, size }: MadeLayer
): AsyncGenerator<Buffer, void, undefined> {
  const found = await files.open(path)
  try {
    if (found.size !== size) throw new BadResult(`a layer has ${found.size} bytes, and had ${size}`)
    yield* found.content
  } finally {
    found.close()
  }
}

async function* explained(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* pieces
  } catch (error) {
    throw asBadResult(error)
  }
}

const asBadResult = (error: unknown): unknown =>
  error instanceof RegistryFailure || error instanceof SyntaxError ? new BadResult(error.message) : error
