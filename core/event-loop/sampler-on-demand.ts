import { url as inspectorUrl } from 'node:inspector'
import { type Sample, type StackSampler, startStackSampler } from './stack-sampler.js'

/** Before a stall is logged: a look takes some time, and what is over cannot be seen any more. */
const sampleAfterMs = 100
/** Stalls come in series: what causes one causes the next. */
const keepMs = 3_600_000

/**
 * The sampler, while stalls are to be expected: it is a thread of some 9 MiB, which most installations never
 * need. So the first stall in a while is measured only, and what the next one stands still in is seen.
 */
export class SamplerOnDemand {
  #sampler: StackSampler | undefined
  #until = 0
  #hasFailed = false

  constructor(
    private readonly onError: (error: Error) => void,
    private readonly start: typeof startStackSampler = startStackSampler
  ) {}

  get isRunning(): boolean {
    return this.#sampler !== undefined
  }

  /** Says that there was a stall; `now` counts milliseconds, as below. */
  stalled(now: number): void {
    this.#until = now + keepMs
    // Two debuggers would pause each other's thread, and a breakpoint is no stall.
    if (this.#sampler !== undefined || this.#hasFailed || inspectorUrl() !== undefined) return
    this.#sampler = this.start(sampleAfterMs, error => {
      this.#hasFailed = true
      this.onError(error)
    })
  }

  /** Says that the event loop turns; `beat` is one more than the last. */
  beat(beat: number, now: number): void {
    if (this.#sampler === undefined) return
    if (now >= this.#until) void this.close()
    else this.#sampler.beat(beat)
  }

  /** What ran after a beat, when it was seen. */
  sampleAfter(beat: number): Sample | undefined {
    return this.#sampler?.sampleAfter(beat)
  }

  async close(): Promise<void> {
    const sampler = this.#sampler
    this.#sampler = undefined
    await sampler?.close()
  }
}
