/** A test, as far as skipping it goes. */
export interface Skippable {
  plan(count: number, comment?: string): void
}

/** What a machine lacks for a test. */
interface Lack {
  /** As CI is told what it must have: `a Docker Engine`. */
  readonly what: string
  /** Why it is not there, and what helps. */
  readonly reason: string
}

const announced = new Set<string>()

/** Skips a test, which stderr says, once for each lack; with `CI=true` it throws, as nobody would see there that nothing was tested. */
export function skipWithout(t: Skippable, { what, reason }: Lack): false {
  if (process.env.CI === 'true') throw new Error(`CI must have ${what}: ${reason}`)
  const line = `TESTS THAT NEED ${what.toUpperCase()} SKIPPED (${process.argv[1] ?? ''}): ${reason}`
  if (!announced.has(line)) process.stderr.write(`\n!!! ${line}\n\n`)
  announced.add(line)
  t.plan(0, reason)
  return false
}

/**
 * Call it first in every test that does what only root may: `does` says what, as in "mounts a small disk".
 *
 *     if (!requireRoot(t, 'mounts a small disk')) return
 */
export function requireRoot(t: Skippable, does: string): boolean {
  if (process.getuid?.() === 0) return true
  return skipWithout(t, {
    what: 'root',
    reason: `only root ${does}: run the tests as root, with sudo -E env "PATH=$PATH" npm test`
  })
}
