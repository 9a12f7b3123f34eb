import { heaviestOwners } from 'busbar/api/containers'

/** What a deployment that is being prepared keeps on the disk. */
export interface Holding {
  readonly deploymentId: string
  readonly ownerId: string
  /** The images that it has claimed and no application keeps. */
  readonly handles: readonly string[]
  /** What its build has written, or its pull brought. */
  readonly writtenBytes: number
}

interface Holder {
  readonly deploymentId: string
  /** Of all that its owner has under way. */
  readonly ownerBytes: number
}

/**
 * Which deployment ends when another one waits for room: of the owner whose deployments hold most, if that is more than
 * what the waiting one's owner would have then, the one that holds most. So large requests gain nothing over small builds.
 */
export function largestHolder(
  holdings: readonly Holding[],
  wanted: { readonly deploymentId: string; readonly bytes: number },
  sizes: ReadonlyMap<string, number>
): Holder | undefined {
  const owners = ownersOf(holdings)
  const own = holdings.find(({ deploymentId }) => deploymentId === wanted.deploymentId)
  const isForeign = ({ ownerId }: Holding): boolean => ownerId !== own?.ownerId
  const bytesOf = (ofOwner: readonly Holding[]): number => heldBy(ofOwner, owners, sizes)
  const ownBytes = bytesOf(holdings.filter(holding => !isForeign(holding)))
  const [most] = heaviestOwners(holdings.filter(isForeign), bytesOf)
  if (most === undefined || most.weight <= ownBytes + wanted.bytes) return undefined
  const [largest] = [...most.held].sort((a, b) => bytesOf([b]) - bytesOf([a]))
  return largest === undefined ? undefined : { deploymentId: largest.deploymentId, ownerBytes: most.weight }
}

/** By image, who has claimed it. */
function ownersOf(holdings: readonly Holding[]): ReadonlyMap<string, ReadonlySet<string>> {
  const owners = new Map<string, Set<string>>()
  for (const { handles, ownerId } of holdings)
    for (const handle of handles) owners.set(handle, (owners.get(handle) ?? new Set()).add(ownerId))
  return owners
}

/** An image counts once, and only where no other owner needs it: else it would stay. */
function heldBy(
  holdings: readonly Holding[],
  owners: ReadonlyMap<string, ReadonlySet<string>>,
  sizes: ReadonlyMap<string, number>
): number {
  const alone = new Set(
    holdings.flatMap(({ handles }) => handles).filter(handle => owners.get(handle)?.size === 1)
  )
  const images = [...alone].reduce((sum, handle) => sum + (sizes.get(handle) ?? 0), 0)
  return holdings.reduce((sum, { writtenBytes }) => sum + writtenBytes, images)
}
