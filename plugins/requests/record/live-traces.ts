import type { Bus } from 'busbar/sdk'
import type { Trace } from './trace.js'

/** Told on one channel in a second; whoever reads along reads no more, and the history has all of them. */
const mostASecond = 200
const secondMs = 1000
const ofAll = 'requests:all'

/** Tells requests to those who listen, after they were stored. */
export class LiveTraces {
  #second = 0
  #told = new Map<string, number>()

  constructor(private readonly bus: Pick<Bus, 'publish' | 'hasSubscribers'>) {}

  publish(traces: readonly Trace[]): void {
    const second = Math.floor(performance.now() / secondMs)
    if (second !== this.#second) this.#told = new Map()
    this.#second = second
    for (const trace of traces) {
      this.#tell(ofAll, trace)
      if (trace.application_id !== null) this.#tell(`requests:${trace.application_id}`, trace)
    }
  }

  #tell(channel: string, trace: Trace): void {
    const told = this.#told.get(channel) ?? 0
    if (told >= mostASecond || !this.bus.hasSubscribers(channel)) return
    this.#told.set(channel, told + 1)
    this.bus.publish(channel, 'request', { ...trace, recorded_at: trace.recorded_at.toISOString() })
  }
}
