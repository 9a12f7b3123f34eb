import { basename } from 'node:path'

/** How directly a test is about a file: the lower, the sooner it is asked. */
export const closeness = { named: 0, imports: 1, other: 2 } as const
export type Closeness = (typeof closeness)[keyof typeof closeness]

/** `foo.test.ts` is named after every `foo.ts`; whether it is near is for others to say. */
export const isNamedAfter = (test: string, file: string): boolean =>
  basename(test) === `${basename(file, '.ts')}.test.ts`

/**
 * Who is asked when: the test that is named after the file, then those that import it themselves, then what starts
 * nothing, then the rest; in each group the fastest come first. The first notices most defects, and where it does
 * not, it is the place for the case that is missing. A group is learned only when none before it has noticed.
 */
export function groupsOfAsking(
  tests: readonly string[],
  closenessOf: (test: string) => Closeness,
  isStarting: (test: string) => boolean
): string[][] {
  const others = tests.filter(test => closenessOf(test) === closeness.other)
  return [
    tests.filter(test => closenessOf(test) === closeness.named),
    tests.filter(test => closenessOf(test) === closeness.imports),
    others.filter(test => !isStarting(test)),
    others.filter(isStarting)
  ].filter(group => group.length > 0)
}
