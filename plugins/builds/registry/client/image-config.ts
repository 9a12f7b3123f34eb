import { isReservedLabel } from 'busbar/api/images'
import { parseBounded } from './bounded-json.js'
import { isDigest, platformOf } from './manifest.js'
import { RegistryFailure } from './registry-failure.js'

export interface ImageConfig {
  /** What it is made for: `linux/amd64`. */
  readonly platform: string
  /** The digests of its unpacked layers, lowest first. */
  readonly diffIds: readonly string[]
  /**
   * The configuration for the engine, written anew: the engine's reader takes keys whatever their case, and the last of two,
   * so that what a registry has written could name other layers to it than were read here. What containers and builds
   * do not need is left out, and so are labels that mean something to a platform.
   */
  readonly rewritten: Buffer
}

/** Nothing runs that says more than half as much: it does not fit into the engine's messages. */
export const maxConfigBytes = 2 * 2 ** 20

type Json = Readonly<Record<string, unknown>>

/** Reads what an image says of itself; of its digest the caller is certain. Throws a `RegistryFailure`. */
export function readImageConfig(bytes: Buffer, layers: number): ImageConfig {
  const written = parse(bytes)
  const { os = 'linux', architecture, variant, rootfs } = written
  const { type = 'layers', diff_ids: diffIds } = objectOf(rootfs)
  if (os !== 'linux' && os !== '') {
    const made = platformOf(os, architecture, variant)
    throw new RegistryFailure('platform', `it is made for ${made}, and containers here run Linux`)
  }
  if (type !== 'layers' || !Array.isArray(diffIds) || !diffIds.every(isDigest))
    throw broken('its configuration does not name its layers')
  if (diffIds.length !== layers)
    throw broken(`its configuration names ${diffIds.length} layers, and its manifest ${layers}`)
  // Before images for several machines they did not tell.
  const platform = architecture === undefined || architecture === '' ? 'linux' : undefined
  return {
    platform: platform ?? platformOf('linux', architecture, variant),
    diffIds,
    rewritten: rewrite(written, diffIds)
  }
}

const imageKeys = ['architecture', 'variant', 'os', 'os.version', 'os.features', 'created', 'author']
const historyKeys = ['created', 'created_by', 'author', 'comment', 'empty_layer']
/** What a container takes over, or a build upon the image. */
const containerKeys = [
  'User',
  'ExposedPorts',
  'Env',
  'Cmd',
  'Healthcheck',
  'ArgsEscaped',
  'Volumes',
  'WorkingDir',
  'Entrypoint',
  'OnBuild',
  'Labels',
  'StopSignal',
  'StopTimeout',
  'Shell'
]

function rewrite(written: Json, diffIds: readonly string[]): Buffer {
  const { config, history } = written
  const container = picked(objectOf(config), containerKeys)
  const rewritten = {
    ...picked(written, imageKeys),
    config: { ...container, ...('Labels' in container && { Labels: unreserved(container.Labels) }) },
    rootfs: { type: 'layers', diff_ids: diffIds },
    ...(Array.isArray(history) && { history: history.map(step => picked(objectOf(step), historyKeys)) })
  }
  try {
    return Buffer.from(JSON.stringify(rewritten))
  } catch {
    throw broken('its configuration is nested too deeply')
  }
}

const picked = (from: Json, keys: readonly string[]): Json =>
  Object.fromEntries(keys.filter(key => Object.hasOwn(from, key)).map(key => [key, from[key]]))

const unreserved = (labels: unknown): Json =>
  Object.fromEntries(Object.entries(objectOf(labels)).filter(([key]) => !isReservedLabel(key)))

const objectOf = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}

function parse(bytes: Buffer): Json {
  try {
    const value: unknown = parseBounded(bytes)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  } catch {
    // Told below.
  }
  throw broken('its configuration is no JSON object, or one of very many members')
}

const broken = (reason: string): RegistryFailure => new RegistryFailure('broken', reason)
