import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { type ImageConfig, maxConfigBytes, readImageConfig } from './image-config.js'
import { locateImage } from './image-location.js'
import { provenLayer } from './layer-stream.js'
import {
  type Descriptor,
  isDigest,
  type Manifest,
  manifestTypes,
  maxManifestBytes,
  readManifest
} from './manifest.js'
import { packedBytes } from './packed-bytes.js'
import { pickEntry } from './platform-choice.js'
import { RegistryFailure } from './registry-failure.js'
import type { RegistryReader } from './registry-reader.js'
import type { UnpackBudget } from './unpack-budget.js'

export interface RemoteLayer {
  /** Of its packed bytes, `sha256:…`, and how many they are. */
  readonly digest: string
  readonly size: number
  /** Of what they unpack to. */
  readonly diffId: string
}

/** An image as its registry describes it, for one kind of machine. */
export interface RemoteImage {
  /** Of what the name stands for, an index or a manifest: `name@sha256:…` finds the same again. */
  readonly digest: string
  readonly manifestDigest: string
  /** For the engine: see `ImageConfig.rewritten`. */
  readonly config: Buffer
  /**
   * What its configuration says that it is made for: `linux/amd64`, `linux/arm/v7`; `linux` alone where it does not say.
   * It need not be what was asked for: there may be no choice, and an index may be wrong.
   */
  readonly platform: string
  /** Lowest first. */
  readonly layers: readonly RemoteLayer[]
}

/** An index in an index is as deep as they go. */
const maxIndexes = 2

/**
 * Asks what a name of the reader's repository stands for on a machine (`linux/amd64`, `linux/arm/v7`). No digest is
 * believed that the bytes do not have. Rejects with a `Problem`, or the reason of the reader's signal.
 */
export async function describeImage(
  reader: RegistryReader,
  reference: string,
  platform: string
): Promise<RemoteImage> {
  const { registry, path, version } = locateImage(reference)
  if (registry !== reader.location.registry || path !== reader.location.path)
    throw new Error(`the reader of ${reader.image} is asked for ${reference}`)
  try {
    const named = await readNamed(reader, version)
    const { manifest, digest: manifestDigest } = await descend(reader, named, platform)
    const { config, layers } = manifest
    const bytes = await readContent(reader, `blobs/${config.digest}`, config, maxConfigBytes)
    const { platform: madeFor, diffIds, rewritten } = readImageConfig(bytes, layers.length)
    return {
      digest: named.digest,
      manifestDigest,
      config: rewritten,
      platform: madeFor,
      layers: withDiffIds(layers, diffIds)
    }
  } catch (error) {
    throw reader.problemOf(error, reference)
  }
}

/**
 * Its packed bytes, exactly `size`. Ends well only when they and what they unpack to have the digests of the layer;
 * else it fails with a `Problem`, or the reason of the reader's signal. Destroy it to stop. The budget is that of all
 * layers of the image.
 */
export function openLayer(reader: RegistryReader, layer: RemoteLayer, budget: UnpackBudget): Readable {
  const stopped = new AbortController()
  const signal = AbortSignal.any([reader.parts.signal, stopped.signal])
  const pieces = provenLayer(packedBytes(reader, layer, signal), layer, budget)
  return new Readable({
    read() {
      pieces.next().then(
        ({ done, value }) => this.push(done === true ? null : value),
        (error: unknown) => this.destroy(reader.problemOf(error) as Error)
      )
    },
    // A generator that waits for the network ends only when that does.
    destroy(error, done) {
      stopped.abort()
      pieces.return().then(
        () => done(error),
        () => done(error)
      )
    }
  })
}

interface Found<M extends Manifest = Manifest> {
  readonly digest: string
  readonly manifest: M
}

async function readNamed(reader: RegistryReader, version: string): Promise<Found> {
  const accept = manifestTypes.join(', ')
  const { bytes, contentType } = await reader.read(`manifests/${version}`, maxManifestBytes, accept)
  const digest = digestOf(bytes)
  if (isDigest(version) && digest !== version) throw otherContent(version, digest)
  return { digest, manifest: readManifest(bytes, contentType) }
}

/** From an index to the manifest for a machine. */
async function descend(
  reader: RegistryReader,
  named: Found,
  platform: string
): Promise<Found<Manifest & { kind: 'image' }>> {
  let { digest, manifest } = named
  for (let indexes = 0; manifest.kind === 'index'; indexes++) {
    if (indexes === maxIndexes)
      throw new RegistryFailure('format', `its index is nested deeper than ${maxIndexes} times`)
    const entry = pickEntry(manifest.entries, platform)
    if (entry.size > maxManifestBytes)
      throw new RegistryFailure('broken', `its manifest has ${entry.size} bytes`)
    const found = await readNamed(reader, entry.digest)
    digest = found.digest
    manifest = found.manifest
  }
  return { digest, manifest }
}

async function readContent(
  reader: RegistryReader,
  path: string,
  { digest, size }: Descriptor,
  maxBytes: number
): Promise<Buffer> {
  if (size > maxBytes) throw new RegistryFailure('format', `its configuration has ${size} bytes`)
  const { bytes } = await reader.read(path, maxBytes)
  if (digestOf(bytes) !== digest) throw otherContent(digest, digestOf(bytes))
  return bytes
}

const withDiffIds = (
  layers: readonly Descriptor[],
  diffIds: ImageConfig['diffIds']
): readonly RemoteLayer[] =>
  layers.map(({ digest, size }, at) => ({ digest, size, diffId: diffIds[at] ?? '' }))

const digestOf = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`

const otherContent = (wanted: string, came: string): RegistryFailure =>
  new RegistryFailure('broken', `verification failed: ${wanted} came as ${came}`)
