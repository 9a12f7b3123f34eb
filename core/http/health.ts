import { type Contributions, cutText, kindOf } from 'busbar/sdk'
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
  /** Takes secrets out of what they say. */
  readonly clean: (text: string) => string
}

const checkLimitMs = 3_000
const sharedMs = 1_000
/** Characters of what a plugin reports. */
const longestName = 100
const longestResult = 300
/** A text is cleaned before it is cut to what is shown, and of an endless one not all is looked at. */
const mostCleaned = 4_096
const unhealthy = 'unhealthy'
const uncaught = 'uncaught errors'

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
    const own = Object.entries(vital).map(([name, check]) => resultOf(name, check))
    const others = contributed.entries().map(async ({ key, plugin, value }) => {
      const [, result] = await resultOf(key, async () => textOf(await value.check(), plugin))
      return [Object.hasOwn(vital, key) || key === uncaught ? `${key} (${plugin})` : key, result] as const
    })
    const [needed, reported] = await Promise.all([Promise.all(own), Promise.all(others)])
    return {
      healthy: needed.every(([, result]) => !result.startsWith(unhealthy)),
      checks: Object.fromEntries([
        ...reported.map(([name, result]) => [
          this.#shown(name, longestName),
          this.#shown(result, longestResult)
        ]),
        ...needed,
        ...this.#ownState()
      ])
    }
  }

  /** Of what a plugin says: neither a secret nor more than anybody reads, as it is sent to all who ask. */
  #shown(text: string, most: number): string {
    return cutText(this.parts.clean(cutText(text, mostCleaned)), most)
  }

  #ownState(): ReadonlyArray<readonly [name: string, result: string]> {
    const count = this.#uncaught
    return count === 0
      ? []
      : [
          [
            uncaught,
            `degraded: ${count} ${count === 1 ? 'error that belongs' : 'errors that belong'} to no plugin since the start; see the log`
          ]
        ]
  }
}

/** What a plugin's check answered. */
function textOf(answer: unknown, plugin: string): string {
  if (typeof answer === 'string') return answer
  throw new Error(`the health check of the plugin "${plugin}" answered ${kindOf(answer)} instead of a text`)
}

async function resultOf(name: string, check: Check): Promise<readonly [name: string, result: string]> {
  try {
    return [name, await withDeadline(check(), checkLimitMs, 'the check')]
  } catch (error) {
    return [name, `${unhealthy}: ${faultOf(error).message}`]
  }
}
