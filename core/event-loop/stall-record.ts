/** A time in which the event loop did nothing else: no request was read, no answer written. */
export interface Stall {
  /** At least so long. */
  readonly ms: number
  /** Processor time of the whole process meanwhile: next to none while the machine slept or a disk was waited for. */
  readonly cpuMs: number
  readonly at: Date
  /** In whose code or name; undefined where that is not known, or no plugin's. */
  readonly plugin: string | undefined
  /** What ran, as an error's stack; undefined when it could not be seen (native code, garbage collection, a machine that slept). */
  readonly stack: string | undefined
}

interface StallSummary {
  readonly count: number
  readonly totalMs: number
  readonly longestMs: number
}

const none: StallSummary = Object.freeze({ count: 0, totalMs: 0, longestMs: 0 })
const keptStalls = 20

/** What is known of the stalls since the process started. */
export class StallRecord {
  #all = none
  readonly #byPlugin = new Map<string, StallSummary>()
  readonly #latest: Stall[] = []

  get all(): StallSummary {
    return this.#all
  }

  /** There is no entry for stalls of no known plugin. */
  get byPlugin(): ReadonlyMap<string, StallSummary> {
    return this.#byPlugin
  }

  /** The last few, oldest first. */
  get latest(): readonly Stall[] {
    return this.#latest
  }

  add(stall: Stall): void {
    this.#all = withStall(this.#all, stall)
    if (stall.plugin !== undefined)
      this.#byPlugin.set(stall.plugin, withStall(this.#byPlugin.get(stall.plugin) ?? none, stall))
    this.#latest.push(stall)
    if (this.#latest.length > keptStalls) this.#latest.shift()
  }
}

const withStall = ({ count, totalMs, longestMs }: StallSummary, { ms }: Stall): StallSummary => ({
  count: count + 1,
  totalMs: totalMs + ms,
  longestMs: Math.max(longestMs, ms)
})
