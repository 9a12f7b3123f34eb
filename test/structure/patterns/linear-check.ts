import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { check } from 'recheck'
import type { Pattern } from './pattern-list.js'
import { partsOf } from './pattern-parts.js'

const atOnce = 2
const partLimitMs = 120_000
/**
 * What cannot be decided is tried with texts made by chance: the same ones in each run. How long a try may take is counted
 * in the characters that it reads: by the clock, as recheck counts unless told otherwise, a try that waits a quarter of a
 * second for a processor makes its pattern a polynomial.
 */
const trials = { randomSeed: 1, seedingTimeout: null, incubationTimeout: null, attackTimeout: null }

/** Why a pattern is not linear, or null. By `/source/flags` of a part: verdicts do not depend on where it stands. */
type Verdicts = Map<string, string | null>

/** Looks at every part that has no verdict yet. */
export async function checkParts(patterns: readonly Pattern[], verdicts: Verdicts): Promise<void> {
  const wanted = new Map(patterns.flatMap(partsOf).map(part => [keyOf(part), part]))
  const left = [...wanted].filter(([key]) => !verdicts.has(key))
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop())
      verdicts.set(next[0], await faultOf(next[1]))
  }
  await Promise.all(Array.from({ length: atOnce }, work))
}

/** What is wrong with a pattern all of whose parts have a verdict; null when it is linear. */
export function faultIn(pattern: Pattern, verdicts: Verdicts): string | null {
  for (const part of partsOf(pattern)) {
    const key = keyOf(part)
    const fault = verdicts.get(key)
    if (fault === undefined) throw new Error(`${key} was not checked`)
    if (fault !== null) return key === keyOf(pattern) ? fault : `${fault} in ${key}`
  }
  return null
}

const keyOf = ({ source, flags }: Pattern): string => `/${source}/${flags}`

async function faultOf({ source, flags }: Pattern): Promise<string | null> {
  const result = await check(source, flags, { timeout: partLimitMs, ...trials })
  if (result.status === 'safe') return null
  if (result.status === 'unknown') return `it cannot be decided (${result.error.kind}): write it more simply`
  return `${result.complexity.summary}, as for ${JSON.stringify(result.attack.pattern).slice(0, 160)}`
}

/** Verdicts of former runs. Only the checks are slow. */
export function readVerdicts(file: string): Verdicts {
  try {
    return new Map(Object.entries(JSON.parse(readFileSync(file, 'utf8')) as Record<string, string | null>))
  } catch {
    return new Map()
  }
}

export function writeVerdicts(file: string, verdicts: Verdicts): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, JSON.stringify(Object.fromEntries([...verdicts].filter(([, fault]) => fault === null))))
}
