import type { Log } from 'busbar/sdk'
import { withDeadline } from './clock/waits.js'

interface Part {
  readonly name: string
  readonly stop: () => unknown
}

/** The parts share what is left of the time; each has this much even when nothing is left. */
const leastMs = 1_000

/**
 * Stops the parts of the platform in the reverse order of their start. One that fails or hangs is named
 * in the log and left behind: the others are stopped all the same, and within a known time.
 */
export class Shutdown {
  readonly #parts: Part[] = []
  #running: Promise<void> | undefined

  constructor(private readonly limitMs: number) {}

  add(name: string, stop: Part['stop']): void {
    this.#parts.push({ name, stop })
  }

  async run(log?: Pick<Log, 'error'>): Promise<void> {
    this.#running ??= this.#run(log)
    await this.#running
  }

  async #run(log: Pick<Log, 'error'> | undefined): Promise<void> {
    const endsAt = performance.now() + this.limitMs
    for (const { name, stop } of this.#parts.splice(0).reverse()) {
      const leftMs = Math.round(Math.max(leastMs, endsAt - performance.now()))
      try {
        await withDeadline(stop(), leftMs, `stopping ${name}`)
      } catch (error) {
        log?.error({ err: error, part: name }, `${name} did not end, and is left behind`)
      }
    }
  }
}
