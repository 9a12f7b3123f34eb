/** What somebody holds of something that all share: a disk. */
export interface HeldBy {
  /** The user who answers for it. */
  readonly ownerId: string
}

export interface OwnerHolding<T extends HeldBy> {
  readonly ownerId: string
  /** In the order in which they were given. */
  readonly held: readonly T[]
  readonly weight: number
}

/**
 * Who holds most of what all share gives way first. An owner is weighed by all of it together, so that to split it over projects,
 * applications or time gains nothing. The heaviest comes first; of equals, whoever was named first.
 */
export function heaviestOwners<T extends HeldBy>(
  all: readonly T[],
  weigh: (held: readonly T[]) => number
): ReadonlyArray<OwnerHolding<T>> {
  const owners = new Map<string, T[]>()
  for (const one of all) {
    const held = owners.get(one.ownerId)
    if (held === undefined) owners.set(one.ownerId, [one])
    else held.push(one)
  }
  return [...owners]
    .map(([ownerId, held]) => ({ ownerId, held, weight: weigh(held) }))
    .sort((a, b) => b.weight - a.weight)
}
