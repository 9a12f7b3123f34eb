import type { ContainerParts } from '../api.js'

type Volume = ContainerParts['volumes'][number]

const isVolume = (one: unknown): one is Volume => {
  const { volume, path } = (one ?? {}) as Partial<Record<keyof Volume, unknown>>
  return typeof volume === 'string' && typeof path === 'string'
}

/** The volumes that a plugin adds to a container; nothing adds none. Throws what is expected, and names it. */
export function volumesOf(parts: unknown, what: string): ContainerParts['volumes'] {
  if (parts === undefined || parts === null) return []
  const { volumes } = parts as { readonly volumes?: unknown }
  if (Array.isArray(volumes) && volumes.every(isVolume)) return volumes
  throw new TypeError(`${what} are not { volumes: [{ volume, path }] }`)
}
