import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

export interface SampleOptions {
  /** Those that run at every commit: one of each class, and the moments at which most is at stake. */
  readonly always: readonly string[]
  /** How many of the others run. */
  readonly others: number
}

/**
 * Cases of a product that grows, as a crash at every boundary of every kind of deploy. `npm test` runs those that matter
 * most and a few of the others, chosen by the commit; `npm run test:faults` (`SAMPLES=all`) runs them all. What is left
 * out is told on stderr, and `SAMPLES_SEED=<commit>` runs the choice of another commit.
 */
export function rotatingSample(
  title: string,
  cases: readonly string[],
  options: SampleOptions
): ReadonlySet<string> {
  if (process.env.SAMPLES === 'all') return new Set(cases)
  const seed = process.env.SAMPLES_SEED ?? commit()
  const chosen = choose(title, cases, options, seed)
  const left = cases.filter(one => !chosen.has(one))
  process.stderr.write(
    `${title}: ${chosen.size} of ${cases.length} cases, chosen by SAMPLES_SEED=${seed}; without ${left.map(one => `"${one}"`).join(', ')} (npm run test:faults runs them all)\n`
  )
  return chosen
}

/** The same for the same seed, in the order of `cases`; over many seeds every case has its turn. */
export function choose(
  title: string,
  cases: readonly string[],
  { always, others }: SampleOptions,
  seed: string
): ReadonlySet<string> {
  const unknown = always.filter(one => !cases.includes(one))
  if (unknown.length > 0) throw new Error(`no such cases: ${unknown.join(', ')}`)
  const rank = (one: string): string => createHash('sha256').update(`${seed}\n${title}\n${one}`).digest('hex')
  const turn = cases
    .filter(one => !always.includes(one))
    .map(one => ({ one, at: rank(one) }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .slice(0, others)
    .map(({ one }) => one)
  return new Set(cases.filter(one => always.includes(one) || turn.includes(one)))
}

/** Sources that are no checkout have one choice for ever. */
function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], {
      cwd: import.meta.dirname,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore']
    }).trim()
  } catch {
    return 'none'
  }
}
