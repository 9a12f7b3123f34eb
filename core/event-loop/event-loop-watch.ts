import type { Log } from 'busbar/sdk'
import { SamplerOnDemand } from './sampler-on-demand.js'
import { pluginIn, stackText } from './stack.js'
import type { Sample } from './stack-sampler.js'
import type { Stall, StallRecord } from './stall-record.js'

/** What a start loads and compiles takes its time, and is no fault. */
const settleMs = 5_000
/** Each wakes the process, which is most of what one with nothing to do costs. */
const beatMs = 100
/** While a second thread looks at them. */
const watchedBeatMs = 50
/** Longer stalls are logged; of those that are hardly longer, some are seen as shorter by up to a beat. */
const leastStallMs = 200
/** At most one line in so much time; the record has all. */
const linesEveryMs = 10_000

interface WatchOptions {
  readonly log: Log
  readonly record: StallRecord
}

/**
 * Measures all the time how long the event loop stands still, which costs ten timers a second. From the
 * first stall on, a second thread sees what it stands still in.
 */
export function watchEventLoop(options: WatchOptions): { stop(): Promise<void> } {
  let watch: { stop(): Promise<void> } | undefined
  const settled = setTimeout(() => {
    watch = beginWatch(options)
  }, settleMs).unref()
  return {
    async stop() {
      clearTimeout(settled)
      await watch?.stop()
    }
  }
}

function beginWatch({ log, record }: WatchOptions): { stop(): Promise<void> } {
  const lines = new LineLimit(linesEveryMs)
  const sampler = new SamplerOnDemand(error => {
    log.warn(
      { err: error },
      'what the event loop stands still in cannot be seen any more; how long it does is still measured'
    )
  })
  let beat = 0
  let beatAt = performance.now()
  let cpu = process.cpuUsage()
  let dueIn = beatMs
  const turn = (): void => {
    const now = performance.now()
    const ms = Math.round(now - beatAt - dueIn)
    const used = process.cpuUsage()
    if (ms >= leastStallMs) {
      note(stallOf(ms, used.user + used.system - cpu.user - cpu.system, sampler.sampleAfter(beat)), now)
      sampler.stalled(now)
    }
    beatAt = now
    cpu = used
    beat = (beat + 1) | 0
    sampler.beat(beat, now)
    dueIn = sampler.isRunning ? watchedBeatMs : beatMs
    timer = setTimeout(turn, dueIn).unref()
  }
  let timer = setTimeout(turn, dueIn).unref()

  function note(stall: Stall, now: number): void {
    record.add(stall)
    const { ms, cpuMs, plugin, stack } = stall
    const others = lines.pass(now)
    if (others === undefined) return
    log.warn(
      { plugin, stallMs: ms, cpuMs, stack, ...(others > 0 && { others }) },
      `the event loop stood still for ${ms} ms${plugin === undefined ? '' : ` in plugin ${plugin}`}`
    )
  }

  return {
    async stop() {
      clearTimeout(timer)
      await sampler.close()
    }
  }
}

function stallOf(ms: number, cpuMicros: number, sample: Sample | undefined): Stall {
  return {
    ms,
    cpuMs: Math.round(cpuMicros / 1000),
    at: new Date(),
    plugin: sample === undefined ? undefined : (pluginIn(sample.calls) ?? sample.plugin),
    stack: sample === undefined ? undefined : stackText(sample.calls)
  }
}

/** Lets one through in a while, with how many it held back since. */
class LineLimit {
  #nextAt = -Infinity
  #held = 0

  constructor(private readonly everyMs: number) {}

  pass(now: number): number | undefined {
    if (now < this.#nextAt) {
      this.#held++
      return undefined
    }
    const held = this.#held
    this.#nextAt = now + this.everyMs
    this.#held = 0
    return held
  }
}
