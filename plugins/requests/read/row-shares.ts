/** An application, and how many requests are kept of it; null: what no application has answered. */
export interface Holder {
  readonly applicationId: string | null
  readonly rows: number
}

/**
 * How many each has to give up so that `most` are left. Who has most gives first: nobody is pushed out by a neighbour who is flooded,
 * and whoever has less than an equal share keeps all.
 */
export function surplusOf(holders: readonly Holder[], most: number): readonly Holder[] {
  const total = holders.reduce((sum, { rows }) => sum + rows, 0)
  if (total <= most) return []
  const ascending = holders.toSorted((a, b) => a.rows - b.rows)
  let left = most
  let share = 0
  for (const [index, { rows }] of ascending.entries()) {
    share = Math.floor(left / (ascending.length - index))
    if (rows > share) break
    left -= rows
  }
  return holders.flatMap(({ applicationId, rows }) =>
    rows > share ? [{ applicationId, rows: rows - share }] : []
  )
}
