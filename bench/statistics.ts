/** The value below which `share` of the values lie; NaN when there are none. */
export function quantile(values: readonly number[] | Float64Array, share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export const median = (values: readonly number[]): number => quantile(values, 0.5)

/** The median of the ratios of two runs that were made next to each other. */
export const medianRatio = (ours: readonly number[], reference: readonly number[]): number =>
  median(ours.map((value, round) => value / (reference[round] ?? Number.NaN)))
