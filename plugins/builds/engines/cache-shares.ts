import { heaviestOwners } from 'busbar/api/containers'

/** What the build engine of a project keeps. */
interface KeptCache {
  readonly projectId: string
  /** The user whose project it is. */
  readonly ownerId: string
  readonly usedAt: Date
  /** Something is being built in it. */
  readonly isBusy: boolean
  readonly bytes: number
}

/**
 * Which cache gives way next where all together have more than they may: of the owner whose engines keep most the one that was not
 * used for longest, and after those what is in use. Who keeps no more than an equal part of it loses nothing, whatever
 * others keep. None that was tried before.
 */
export function nextToGo(
  caches: readonly KeptCache[],
  tried: ReadonlySet<string>,
  maxBytes: number
): KeptCache | undefined {
  if (bytesOf(caches) <= maxBytes) return undefined
  const owners = heaviestOwners(caches, bytesOf)
  const part = maxBytes / owners.length
  return owners
    .filter(({ weight }) => weight > part)
    .flatMap(({ held }) =>
      held
        .filter(({ projectId }) => !tried.has(projectId))
        .sort((a, b) => Number(a.isBusy) - Number(b.isBusy) || a.usedAt.getTime() - b.usedAt.getTime())
    )[0]
}

const bytesOf = (caches: readonly KeptCache[]): number => caches.reduce((sum, { bytes }) => sum + bytes, 0)
