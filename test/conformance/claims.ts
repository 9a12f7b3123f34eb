import { type Test, test } from 'tap'
import { type InstallationOptions, startInstallation } from './installation.js'
import { type Placement, Stage } from './stage.js'

/** Sentences of the contract, and a test that they hold, from outside. */
export interface Claim {
  /** As they stand in `events.md`. */
  readonly says: readonly string[]
  /** Of the test; the sentences themselves unless given. */
  readonly title?: string
  readonly holds: (t: Test, stage: Stage) => Promise<void>
}

export const oneProcess: readonly Placement[] = [{ name: 'in one process', acting: 0, listening: [0] }]
export const twoProcesses: readonly Placement[] = [
  { name: 'listening beside the process that acts', acting: 0, listening: [1] },
  { name: 'acting beside the process that listens', acting: 1, listening: [0] },
  { name: 'with sockets at both', acting: 0, listening: [0, 1] }
]

/** Tests claims, each in every placement. */
export function testClaims(
  claims: readonly Claim[],
  placements: readonly Placement[],
  options: InstallationOptions = {},
  isPossible: (t: Test) => Promise<boolean> = async () => true
): void {
  test('an installation of the platform keeps its contract', async t => {
    if (!(await isPossible(t))) return
    const installation = await startInstallation({
      processes: Math.max(...placements.flatMap(({ acting, listening }) => [acting, ...listening])) + 1,
      ...options
    })
    t.teardown(async () => {
      await installation.close()
    })
    const set = await Stage.set(installation)
    for (const placement of placements)
      for (const { says, title = says.join(' '), holds } of claims)
        await t.test(`${title} (${placement.name})`, async t => {
          const stage = set.at(placement)
          t.teardown(async () => {
            await stage.clear()
          })
          await holds(t, stage)
        })
  })
}
