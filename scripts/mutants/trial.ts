import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasComeBy } from './came-by.js'
import type { KnownTest, KnownTests } from './known-tests.js'
import type { Mutant } from './mutations.js'
import type { Bench } from './workshop.js'

export type Verdict =
  | { readonly kind: 'caught' | 'hung'; readonly by: string }
  /** `asked` tests came by and passed all the same. */
  | { readonly kind: 'survived'; readonly asked: number }
  | { readonly kind: 'not judged'; readonly why: string }

/** Those that came by the place, the fastest first, as many as one defect has time for. */
function testsToAsk(mutant: Mutant, tests: readonly KnownTest[], root: string, limitMs: number): KnownTest[] {
  if (limitMs <= 0) return []
  const cameBy = tests.filter(one => hasComeBy(one.cameBy.get(mutant.file), mutant.reach))
  // Programs that a test kills tell nothing of where they have been.
  const asked =
    cameBy.length > 0
      ? cameBy
      : tests.filter(one => /-(?:child|process)\b/.test(readFileSync(join(root, one.test), 'utf8')))
  let left = limitMs
  return [...asked]
    .sort((a, b) => a.ms - b.ms)
    .filter((one, index) => {
      left -= one.ms
      return index === 0 || left > 0
    })
}

interface Trial {
  readonly mutant: Mutant
  /** Files of tests in the order of asking: a group is run only when none before it has noticed. */
  readonly groups: readonly (readonly string[])[]
  readonly workshop: Bench
  readonly known: Pick<KnownTests, 'learn'>
  readonly root: string
  /** For all tests together. */
  readonly limitMs: number
}

/** Puts the defect in and asks one test after another, until one notices. */
export async function tryMutant({ mutant, groups, workshop, known, root, limitMs }: Trial): Promise<Verdict> {
  let asked = 0
  let usable = 0
  let leftMs = limitMs
  for (const group of groups) {
    const tests: KnownTest[] = []
    for (const test of group) {
      const one = await known.learn(test, workshop)
      if (one !== null) tests.push(one)
    }
    usable += tests.length
    const chosen = testsToAsk(mutant, tests, root, leftMs)
    asked += chosen.length
    for (const { ms } of chosen) leftMs -= ms
    const noticed = await workshop.with(mutant, async () => await firstToNotice(chosen, workshop, limitMs))
    if (noticed !== null) return noticed
  }
  return usable === 0
    ? { kind: 'not judged', why: 'no test that passes without a defect imports it' }
    : { kind: 'survived', asked }
}

async function firstToNotice(
  tests: readonly KnownTest[],
  workshop: Bench,
  limitMs: number
): Promise<Verdict | null> {
  for (const { test, ms } of tests) {
    const outcome = await workshop.run({ test, limitMs: Math.min(limitMs, 4 * ms + 15_000) })
    if (outcome === 'failed') return { kind: 'caught', by: test }
    if (outcome === 'hung') return { kind: 'hung', by: test }
  }
  return null
}
