/**
 * Which cases of a product that grows run at a commit: those that always run, and a few of the others that the commit
 * chooses, so that each has its turn.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'

/** The same for the same seed, in the order of `cases`; over many seeds every case has its turn. */
export function choose(title, cases, { always, others }, seed) {
  const unknown = always.filter(one => !cases.includes(one))
  if (unknown.length > 0) throw new Error(`no such cases: ${unknown.join(', ')}`)
  const rank = one => createHash('sha256').update(`${seed}\n${title}\n${one}`).digest('hex')
  const turn = cases
    .filter(one => !always.includes(one))
    .map(one => ({ one, at: rank(one) }))
    .sort((a, b) => (a.at < b.at ? -1 : 1))
    .slice(0, others)
    .map(({ one }) => one)
  return new Set(cases.filter(one => always.includes(one) || turn.includes(one)))
}

/**
 * `SAMPLES=all` takes all, `SAMPLES_SEED=<commit>` the choice of another commit; what is left out is told on stderr.
 */
export function rotatingSample(title, cases, options) {
  if (process.env.SAMPLES === 'all') return new Set(cases)
  const seed = process.env.SAMPLES_SEED ?? commit()
  const chosen = choose(title, cases, options, seed)
  const left = cases.filter(one => !chosen.has(one))
  process.stderr.write(
    `${title}: ${chosen.size} of ${cases.length} cases, chosen by SAMPLES_SEED=${seed}; without ${left.map(one => `"${one}"`).join(', ')} (npm run test:faults runs them all)\n`
  )
  return chosen
}

/** Sources that are no checkout have one choice for ever. */
export function commit() {
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
