import { isDigest, platformOf } from './manifest.js'
import { RegistryFailure } from './registry-failure.js'

export interface ImageConfig {
  /** What it is made for: `linux/amd64`. */
  readonly platform: string
  /** The digests of its unpacked layers, lowest first. */
  readonly diffIds: readonly string[]
}

export const maxConfigBytes = 4 * 2 ** 20

/** Reads what an image says of itself; of its digest the caller is certain. Throws a `RegistryFailure`. */
export function readImageConfig(bytes: Buffer, layers: number): ImageConfig {
  const { os = 'linux', architecture, variant, rootfs } = parse(bytes)
  const { type = 'layers', diff_ids: diffIds } = (rootfs ?? {}) as Readonly<Record<string, unknown>>
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
  return { platform: platform ?? platformOf('linux', architecture, variant), diffIds }
}

function parse(bytes: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch {
    // Told below.
  }
  throw broken('its configuration is no JSON object')
}

const broken = (reason: string): RegistryFailure => new RegistryFailure('broken', reason)
