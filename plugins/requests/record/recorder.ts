import { Backoff, type Clock, type Log, Wakeable, withTimeLimit } from 'busbar/sdk'
import type { ProxiedRequest, RequestRecorder } from '../api.js'
import { draftOf, type TraceDraft } from './trace.js'
import type { TraceWriter } from './trace-writer.js'

/** One that comes alone waits so long for others. */
const waitMs = 50
/** Stored by one statement. */
const mostAtOnce = 1_000
/** What waits while the database is slow or away, in characters and, of each, what it takes besides. */
const roomChars = 8 * 1024 * 1024
const charsOfOne = 300
/** At the end, for what still waits. */
const lastWriteMs = 3_000

interface RecorderParts {
  readonly writer: Pick<TraceWriter, 'write'>
  readonly clock: Pick<Clock, 'sleep'>
  readonly log: Log
  readonly clean: (text: string) => string
}

/** Takes requests of proxies in this process and stores them in batches; who hands one over never waits. */
export class Recorder implements RequestRecorder {
  /** For want of room, since the plugin was started. */
  dropped = 0
  #waiting: ProxiedRequest[] = []
  /** What is being stored. */
  #batch: readonly TraceDraft[] = []
  #chars = 0
  #droppedUntold = 0
  readonly #change = new Wakeable()
  #isStopped = false

  constructor(private readonly parts: RecorderParts) {}

  record(request: ProxiedRequest): void {
    const chars = charsOf(request)
    // What is no request note comes of a plugin without types.
    if (this.#isStopped || Number.isNaN(chars) || this.#chars + chars > roomChars) {
      this.dropped++
      this.#droppedUntold++
      return
    }
    this.#chars += chars
    this.#waiting.push(request)
    if (this.#waiting.length === 1 || this.#waiting.length === mostAtOnce) this.#change.wake()
  }

  /** Stores what comes until the signal aborts, and what waits then, for a few seconds at most. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#untilDue(signal)
      await this.#storeWaiting(signal)
    }
    this.#isStopped = true
    await withTimeLimit({ ms: lastWriteMs }, async last => await this.#storeWaiting(last))
    const left = this.#batch.length + this.#waiting.length
    this.dropped += left
    this.#droppedUntold += left
    this.#tellDropped()
  }

  async #storeWaiting(signal: AbortSignal): Promise<void> {
    const { writer, clock, log } = this.parts
    const backoff = new Backoff(clock, { firstMs: 250, longestMs: 5_000 })
    while (!signal.aborted && this.#batch.length + this.#waiting.length > 0) {
      if (this.#batch.length === 0) this.#batch = this.#take()
      try {
        if (this.#batch.length > 0) await writer.write(this.#batch)
        this.#batch = []
        backoff.reset()
        this.#tellDropped()
      } catch (error) {
        log[backoff.isFresh ? 'warn' : 'debug'](
          { err: error },
          'requests could not be stored; it is tried again, and what comes meanwhile waits as long as there is room'
        )
        await backoff.pause(signal)
      }
    }
  }

  #take(): readonly TraceDraft[] {
    const taken = this.#waiting.slice(0, mostAtOnce)
    this.#waiting = this.#waiting.slice(taken.length)
    for (const request of taken) this.#chars -= charsOf(request)
    return taken.flatMap(request => this.#draft(request) ?? [])
  }

  #draft(request: ProxiedRequest): TraceDraft | undefined {
    try {
      return draftOf(request, this.parts.clean)
    } catch (error) {
      this.parts.log.warn({ err: error }, 'what a proxy has recorded is no request')
      return undefined
    }
  }

  #tellDropped(): void {
    if (this.#droppedUntold === 0) return
    this.parts.log.warn(
      { dropped: this.#droppedUntold },
      'requests were not recorded: they came faster than they could be stored'
    )
    this.#droppedUntold = 0
  }

  /** Waits until something is there, and then for what may still come. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length === 0) await this.#change.sleep(signal)
    if (!signal.aborted && this.#waiting.length < mostAtOnce) await this.#change.sleep(signal, waitMs)
  }
}

const charsOf = ({ path, userAgent }: Partial<ProxiedRequest> = {}): number =>
  charsOfOne + (path?.length ?? Number.NaN) + (userAgent?.length ?? 0)
