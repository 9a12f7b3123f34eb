/** What a container has of the disk, in whatever is short. */
interface Held {
  readonly ownerId: string
  readonly holds: number
  /** Of that, since the disk was last seen with room. */
  readonly grew: number
}

export interface Giving<T = unknown> {
  readonly containers: readonly T[]
  /** By all containers of the owner. */
  readonly held: number
  /** `growth`: others have as good as the same, and it has come to that last. */
  readonly because: 'most' | 'growth'
}

/** Of what the largest owner has: as good as the same. */
const equalShare = 0.9

/**
 * Whose containers give way: those of the owner who holds most, the largest first. Growth chooses only among owners who
 * hold as good as most and no less than their share of it all, so who has little never goes before who has much.
 * Several go at once where each holds little: else many small ones would be made faster than they go. But no more than
 * give back what is `missing`, and none once the owner holds less than the next one.
 */
export function givingOwner<T extends Held>(uses: readonly T[], missing: number): Giving<T> | undefined {
  const owners = ownersOf(uses).sort((a, b) => b.holds - a.holds)
  const [most] = owners
  if (most === undefined) return undefined
  const fair = sumOf(owners, 'holds') / owners.length
  const [grown = most] = owners
    .filter(({ holds }) => holds >= most.holds * equalShare && holds >= fair)
    .sort((a, b) => b.grew - a.grew)
  const next = Math.max(0, ...owners.filter(owner => owner !== grown).map(({ holds }) => holds))
  return {
    containers: enough(grown, { missing, next }),
    held: grown.holds,
    because: grown === most ? 'most' : 'growth'
  }
}

interface Holder<T> {
  readonly holds: number
  readonly grew: number
  readonly containers: readonly T[]
}

/** Those that hold nothing are none. */
function ownersOf<T extends Held>(uses: readonly T[]): Array<Holder<T>> {
  const byOwner = new Map<string, T[]>()
  for (const use of uses) {
    if (use.holds <= 0) continue
    const its = byOwner.get(use.ownerId)
    if (its === undefined) byOwner.set(use.ownerId, [use])
    else its.push(use)
  }
  return [...byOwner.values()].map(containers => ({
    containers,
    holds: sumOf(containers, 'holds'),
    grew: sumOf(containers, 'grew')
  }))
}

function enough<T extends Held>(
  { holds, containers }: Holder<T>,
  { missing, next }: { readonly missing: number; readonly next: number }
): readonly T[] {
  const largest = [...containers].sort((a, b) => b.holds - a.holds)
  const taken: T[] = []
  let freed = 0
  for (const one of largest) {
    if (taken.length > 0 && (freed >= missing || holds - freed <= next)) break
    taken.push(one)
    freed += one.holds
  }
  return taken
}

const sumOf = <K extends 'holds' | 'grew'>(
  parts: ReadonlyArray<Readonly<Record<K, number>>>,
  key: K
): number => parts.reduce((sum, part) => sum + part[key], 0)
