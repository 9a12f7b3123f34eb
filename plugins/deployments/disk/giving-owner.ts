import { type HeldBy, heaviestOwners } from 'busbar/api/containers'

/** What a container has of the disk, or what images have beside those that containers alone were made from, in whatever is short. */
export interface Held extends HeldBy {
  readonly holds: number
  /** Of that, since the disk was last seen with room. */
  readonly grew: number
}

export interface Giving {
  readonly ownerId: string
  /** By all that the owner has. */
  readonly held: number
  /** By all that the one has who holds most of the others. */
  readonly next: number
  /** `growth`: others have as good as the same, and it has come to that last. */
  readonly because: 'most' | 'growth'
}

/** Of what the largest owner has: as good as the same. */
const equalShare = 0.9

/**
 * Who gives way: the owner who holds most. Growth chooses only among owners who hold as good as most and no less than
 * their share of it all, so who has little never goes before who has much. Those that hold nothing are none.
 */
export function givingOwner(all: readonly Held[]): Giving | undefined {
  const owners = heaviestOwners(
    all.filter(({ holds }) => holds > 0),
    held => sumOf(held, 'holds')
  )
  const [most] = owners
  if (most === undefined) return undefined
  const fair = owners.reduce((sum, { weight }) => sum + weight, 0) / owners.length
  const [grown = most] = owners
    .filter(({ weight }) => weight >= most.weight * equalShare && weight >= fair)
    .sort((a, b) => sumOf(b.held, 'grew') - sumOf(a.held, 'grew'))
  const next = Math.max(0, ...owners.filter(owner => owner !== grown).map(({ weight }) => weight))
  return {
    ownerId: grown.ownerId,
    held: grown.weight,
    next,
    because: grown === most ? 'most' : 'growth'
  }
}

/**
 * Which containers of that owner go, the largest first. Several at once where each holds little: else many small ones would
 * be made faster than they go. But no more than give back what is `missing`, and none once the owner holds less than the
 * next one.
 */
export function enough<T extends Held>(
  containers: readonly T[],
  { held, next, missing }: Pick<Giving, 'held' | 'next'> & { readonly missing: number }
): readonly T[] {
  const largest = [...containers].sort((a, b) => b.holds - a.holds)
  const taken: T[] = []
  let freed = 0
  for (const one of largest) {
    if (taken.length > 0 && (freed >= missing || held - freed <= next)) break
    taken.push(one)
    freed += one.holds
  }
  return taken
}

const sumOf = <K extends 'holds' | 'grew'>(
  parts: ReadonlyArray<Readonly<Record<K, number>>>,
  key: K
): number => parts.reduce((sum, part) => sum + part[key], 0)
