export interface SampleOptions {
  /** Those that run at every commit: one of each class, and the moments at which most is at stake. */
  readonly always: readonly string[]
  /** How many of the others run. */
  readonly others: number
}

/** The same for the same seed, in the order of `cases`; over many seeds every case has its turn. */
export function choose(
  title: string,
  cases: readonly string[],
  options: SampleOptions,
  seed: string
): ReadonlySet<string>

/**
 * Cases of a product that grows, as a crash at every boundary of every kind of deploy. `npm test` runs those that matter
 * most and a few of the others, chosen by the commit; `npm run test:faults` (`SAMPLES=all`) runs them all. What is left
 * out is told on stderr, and `SAMPLES_SEED=<commit>` runs the choice of another commit.
 */
export function rotatingSample(
  title: string,
  cases: readonly string[],
  options: SampleOptions
): ReadonlySet<string>
