import { type Mounted, mountsCollide } from 'busbar/api/containers'
import type { ContainerParts } from '../api.js'
import { DeployFailure } from './deploy-failure.js'

type Volume = ContainerParts['volumes'][number]
type File = NonNullable<ContainerParts['files']>[number]

/** What one plugin adds to a container. */
export interface AddedParts {
  readonly plugin: string
  readonly volumes: readonly Volume[]
  readonly files: readonly File[]
  readonly hidden: readonly string[]
}

const isVolume = (one: unknown): one is Volume => {
  const { volume, path } = (one ?? {}) as Partial<Record<keyof Volume, unknown>>
  return typeof volume === 'string' && typeof path === 'string'
}

const isFile = (one: unknown): one is File => {
  const { path, content, mode } = (one ?? {}) as Partial<Record<keyof File, unknown>>
  return typeof path === 'string' && Buffer.isBuffer(content) && Number.isInteger(mode)
}

const isText = (one: unknown): one is string => typeof one === 'string'

const areAll = <T>(is: (one: unknown) => one is T, list: unknown): list is readonly T[] =>
  Array.isArray(list) && list.every(is)

/** What a plugin adds to a container; nothing adds none. Throws what is expected, and names it. */
export function partsOf(parts: unknown, what: string): Omit<AddedParts, 'plugin'> {
  if (parts === undefined || parts === null) return { volumes: [], files: [], hidden: [] }
  const { volumes, files = [], hidden = [] } = parts as Partial<Record<keyof ContainerParts, unknown>>
  if (areAll(isVolume, volumes) && areAll(isFile, files) && areAll(isText, hidden))
    return { volumes, files, hidden }
  throw new TypeError(
    `${what} are not { volumes: [{ volume, path }], files: [{ path, content, mode }], hidden: [text] }`
  )
}

/** Throws where two of them cannot be mounted in one container: what they were saved with may have been another rule. */
export function checkCollisions(added: ReadonlyArray<Omit<AddedParts, 'hidden'>>): void {
  const mounts = added.flatMap(({ plugin, volumes, files }) => [
    ...volumes.map(({ path }): Mounted & { plugin: string } => ({ kind: 'volume', path, plugin })),
    ...files.map(({ path }): Mounted & { plugin: string } => ({ kind: 'file', path, plugin }))
  ])
  for (const [at, one] of mounts.entries()) {
    const other = mounts.slice(0, at).find(earlier => mountsCollide(one, earlier))
    if (other !== undefined)
      throw new DeployFailure(
        `the ${other.kind} at ${other.path} (${other.plugin}) and the ${one.kind} at ${one.path} (${one.plugin}) cannot be mounted in one container`,
        'remove one of them'
      )
  }
}
