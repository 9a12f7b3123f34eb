/** How many locks of the server's table a connection has. */
export interface LockCount {
  readonly pid: number
  readonly name: string | null
  readonly locks: number
}

/**
 * The connection with most locks, of whose has most with all its connections together. Those of other programs count each for
 * itself, so that a plugin is not named for what many have.
 */
export function mostLocks(
  counts: readonly LockCount[],
  pluginOf: (pid: number) => string | undefined
): LockCount | undefined {
  const byOwner = new Map<string, { all: number; most: LockCount }>()
  for (const count of counts) {
    const owner = pluginOf(count.pid) ?? count.name ?? ''
    const known = byOwner.get(owner)
    if (known === undefined) byOwner.set(owner, { all: count.locks, most: count })
    else {
      known.all += count.locks
      if (count.locks > known.most.locks) known.most = count
    }
  }
  return [...byOwner.values()].sort((a, b) => b.all - a.all)[0]?.most
}

/** The one that has been in a transaction or a statement for longest. */
export function longestBusy<One extends { readonly since: number | undefined }>(
  all: readonly One[]
): One | undefined {
  let longest: One | undefined
  for (const one of all)
    if (one.since !== undefined && one.since < (longest?.since ?? Infinity)) longest = one
  return longest
}
