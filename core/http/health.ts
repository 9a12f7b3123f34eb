import type { Contributions } from 'busbar/sdk'
import { withDeadline } from '../clock/waits.js'
import { faultOf } from '../frames/fault.js'

type Check = () => Promise<string>

interface HealthReport {
  readonly healthy: boolean
  /** By what was checked: `ok`, `ok (3 containers)`, `unhealthy: …`. */
  readonly checks: Readonly<Record<string, string>>
}

interface HealthParts {
  /** What the platform cannot serve without. */
  readonly vital: Readonly<Record<string, Check>>
  /** What plugins contribute: reported, but a missing engine does not make the platform unhealthy. */
  readonly contributed: Contributions<{ check: Check }>
}

const checkLimitMs = 3_000
const sharedMs = 1_000

/**
 * How the platform is. Everybody may ask, and each check takes a connection to something, so a result is shared: by all
 * who ask while it is made, and for a second after.
 */
export class Health {
  #report: Promise<HealthReport> | undefined
  #goodUntil = Infinity
  #uncaught = 0

  constructor(readonly parts: HealthParts) {}

  report(): Promise<HealthReport> {
    if (this.#report === undefined || performance.now() > this.#goodUntil) {
      this.#goodUntil = Infinity
      this.#report = this.#check().finally(() => {
        this.#goodUntil = performance.now() + sharedMs
      })
    }
    return this.#report
  }

  /** An error that belongs to no plugin. What it says is in the log only: everybody may read the report. */
  noteUncaught(): void {
    this.#uncaught++
  }

  async #check(): Promise<HealthReport> {
    const { vital, contributed } = this.parts
    const [needed, reported] = await Promise.all([
      runChecks(Object.entries(vital)),
      runChecks(
        contributed.entries().map(({ key, value }) => [key, async () => await value.check()] as const)
      )
    ])
    return {
      healthy: Object.values(needed).every(result => !result.startsWith('unhealthy')),
      checks: { ...needed, ...reported, ...this.#ownState() }
    }
  }

  #ownState(): Readonly<Record<string, string>> {
    const count = this.#uncaught
    return count === 0
      ? {}
      : {
          'uncaught errors': `degraded: ${count} ${count === 1 ? 'error that belongs' : 'errors that belong'} to no plugin since the start; see the log`
        }
  }
}

async function runChecks(
  checks: ReadonlyArray<readonly [name: string, check: Check]>
): Promise<Record<string, string>> {
  return Object.fromEntries(
    await Promise.all(
      checks.map(async ([name, check]) => {
        try {
          return [name, await withDeadline(check(), checkLimitMs, 'the check')] as const
        } catch (error) {
          return [name, `unhealthy: ${faultOf(error).message}`] as const
        }
      })
    )
  )
}
