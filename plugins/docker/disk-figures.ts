import type { EngineDiskUse } from 'busbar/api/containers'
import { type Clock, isProblem, type Log } from 'busbar/sdk'

/** What was measured, and when that was asked for. */
export interface MeasuredDisk {
  readonly use: EngineDiskUse
  readonly at: Date
}

/** Younger figures are as good as new ones. */
const freshMs = 60_000
/** An engine is not kept at it: after a measurement it has so many times as long without. */
const restTimes = 20
/** After one that has failed. */
const retryMs = 10_000
/** So long the first one is waited for. On a machine with few files it takes less. */
const firstMs = 2_000

/**
 * What the engine's disk holds, by its own account. To give it takes an engine from tenths of a second to minutes, so nobody waits for
 * it: who asks is given the latest figures with their age, and where they are old has new ones made. There is one measurement at
 * a time, and none when nobody asks.
 */
export class DiskFigures {
  #latest: MeasuredDisk | undefined
  #running: Promise<void> | undefined
  #dueAt = Number.NEGATIVE_INFINITY

  constructor(
    private readonly measure: () => Promise<EngineDiskUse>,
    private readonly clock: Pick<Clock, 'now' | 'elapsed' | 'sleep'>,
    private readonly log: Log
  ) {}

  /** Undefined while there are none, as the first measurement takes long or has failed. */
  async read(): Promise<MeasuredDisk | undefined> {
    if (this.#running === undefined && this.clock.elapsed() >= this.#dueAt) this.#running = this.#run()
    if (this.#latest === undefined && this.#running !== undefined) await this.#forAWhile(this.#running)
    return this.#latest
  }

  async #run(): Promise<void> {
    const at = this.clock.now()
    const begun = this.clock.elapsed()
    let pauseMs = retryMs
    try {
      this.#latest = { use: await this.measure(), at }
      pauseMs = Math.max(freshMs, restTimes * (this.clock.elapsed() - begun))
    } catch (error) {
      // Whoever asked is told by the lists that it is away.
      if (!isProblem(error) || error.code !== 'E_ENGINE_UNREACHABLE')
        this.log.warn({ err: error }, 'the container engine has not said what is on its disk')
    }
    this.#dueAt = this.clock.elapsed() + pauseMs
    this.#running = undefined
  }

  async #forAWhile(running: Promise<void>): Promise<void> {
    const over = new AbortController()
    await Promise.race([running, this.clock.sleep(firstMs, over.signal).catch(() => {})])
    over.abort()
  }
}
