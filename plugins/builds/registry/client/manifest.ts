import { parseBounded } from './bounded-json.js'
import { RegistryFailure } from './registry-failure.js'

/** What a manifest names, by its content. */
export interface Descriptor {
  readonly digest: string
  readonly size: number
  readonly mediaType: string
}

/** An image for one kind of machine, or a further index. */
export interface IndexEntry extends Descriptor {
  /** As `linux/arm/v7`; undefined: it is not told. */
  readonly platform: string | undefined
}

export type Manifest =
  | { readonly kind: 'image'; readonly config: Descriptor; readonly layers: readonly Descriptor[] }
  | { readonly kind: 'index'; readonly entries: readonly IndexEntry[] }

type Json = Readonly<Record<string, unknown>>

/** As many as the engine stacks upon one another. */
const maxLayers = 127
const maxEntries = 1000
export const maxManifestBytes = 4 * 2 ** 20

const kinds: Readonly<Record<string, Manifest['kind']>> = {
  'application/vnd.docker.distribution.manifest.v2+json': 'image',
  'application/vnd.oci.image.manifest.v1+json': 'image',
  'application/vnd.docker.distribution.manifest.list.v2+json': 'index',
  'application/vnd.oci.image.index.v1+json': 'index'
}
export const manifestTypes: readonly string[] = Object.keys(kinds)

const configTypes: readonly string[] = [
  'application/vnd.docker.container.image.v1+json',
  'application/vnd.oci.image.config.v1+json',
  // So old registries hand out what they were given.
  'application/octet-stream',
  ''
]
const layerTypes =
  /^application\/vnd\.(?:docker\.image\.rootfs\.diff|oci\.image\.layer\.v1)\.tar(?:[.+](?:gzip|zstd))?$/
const foreignLayerTypes = /\.foreign\.|\.nondistributable\./

/** Reads what a registry has answered as `contentType`. Throws a `RegistryFailure`. */
export function readManifest(bytes: Buffer, contentType: string | undefined): Manifest {
  const type = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  const isNamed = kinds[type] !== undefined
  const manifest = parse(bytes)
  const { schemaVersion, mediaType } = manifest ?? {}
  if (schemaVersion === 1 || /docker\.distribution\.manifest\.v1\+/.test(type))
    throw new RegistryFailure('format', 'its manifest is of schema version 1, which is outdated')
  if (manifest === undefined || schemaVersion !== 2) {
    if (isNamed || /\+json$/.test(type)) throw broken('its manifest is cut off, or says nothing of an image')
    throw new RegistryFailure('answer', `it answers with ${type === '' ? 'something else' : type}`)
  }
  if (mediaType !== undefined && (typeof mediaType !== 'string' || kinds[mediaType] === undefined))
    throw new RegistryFailure('format', `its manifest says that it is ${text(mediaType)}`)
  if (mediaType !== undefined && isNamed && kinds[mediaType] !== kinds[type])
    throw broken(`its manifest says ${mediaType}, and the registry ${type}`)
  const isIndex = manifest.manifests !== undefined
  // One that is both could be read as either.
  if (isIndex && (manifest.layers !== undefined || manifest.config !== undefined))
    throw broken('its manifest is an image and an index')
  const kind = kinds[mediaType ?? type] ?? (isIndex ? 'index' : 'image')
  return kind === 'index' ? readIndex(manifest) : readImage(manifest)
}

function readImage({ config, layers }: Json): Manifest {
  if (!Array.isArray(layers)) throw broken('its manifest names no layers')
  if (layers.length > maxLayers)
    throw new RegistryFailure('format', `it has ${layers.length} layers, and an image may have ${maxLayers}`)
  const described = descriptor(config, 'configuration')
  if (!configTypes.includes(described.mediaType))
    throw new RegistryFailure('format', `it is no image, but ${described.mediaType}`)
  return { kind: 'image', config: described, layers: layers.map(readLayer) }
}

function readLayer(layer: unknown): Descriptor {
  const described = descriptor(layer, 'layer')
  const { mediaType } = described
  if (foreignLayerTypes.test(mediaType))
    throw new RegistryFailure(
      'format',
      'it has a layer that its registry must not hand out (a foreign layer)'
    )
  if (mediaType !== '' && !layerTypes.test(mediaType))
    throw new RegistryFailure('format', `it has a layer that is ${mediaType}`)
  return described
}

function readIndex({ manifests }: Json): Manifest {
  if (!Array.isArray(manifests)) throw broken('its index names no manifests')
  if (manifests.length > maxEntries)
    throw new RegistryFailure('format', `its index names ${manifests.length} manifests`)
  return { kind: 'index', entries: manifests.map(readEntry) }
}

function readEntry(entry: unknown): IndexEntry {
  const { platform } = asObject(entry) ?? {}
  return {
    ...descriptor(entry, 'manifest in its index'),
    platform: platform === undefined || platform === null ? undefined : platformText(platform)
  }
}

function platformText(platform: unknown): string {
  const { os, architecture, variant } = asObject(platform) ?? {}
  return platformOf(os, architecture, variant)
}

/** `linux/arm/v7`. What is no word is `unknown`, for which nothing is wanted. */
export function platformOf(os: unknown, architecture: unknown, variant: unknown): string {
  const words = [os, architecture, ...(variant === undefined || variant === '' ? [] : [variant])]
  return words
    .map(word => (typeof word === 'string' && /^[\w.-]{1,40}$/.test(word) ? word : 'unknown'))
    .join('/')
}

function descriptor(value: unknown, what: string): Descriptor {
  const { digest, size, mediaType = '' } = asObject(value) ?? {}
  if (!isDigest(digest)) throw broken(`a ${what} has no digest by SHA-256`)
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size <= 0)
    throw broken(`a ${what} has the size ${text(size)}`)
  if (typeof mediaType !== 'string') throw broken(`a ${what} has no type`)
  return { digest, size, mediaType }
}

export const isDigest = (value: unknown): value is string =>
  typeof value === 'string' && /^sha256:[0-9a-f]{64}$/.test(value)

function parse(bytes: Buffer): Json | undefined {
  try {
    return asObject(parseBounded(bytes))
  } catch {
    return undefined
  }
}

const asObject = (value: unknown): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined

const text = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).slice(0, 100) : typeof value

const broken = (reason: string): RegistryFailure => new RegistryFailure('broken', reason)
