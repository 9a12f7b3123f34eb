import type { Clock } from 'busbar/sdk'
import { RegistryFailure } from './registry-failure.js'

/** How little may come: as for clones by git, where they are `http.lowSpeedTime` and `http.lowSpeedLimit`. */
export interface PaceLimits {
  readonly seconds: number
  readonly bytesPerSecond: number
}
export const usualPace: PaceLimits = { seconds: 60, bytesPerSecond: 1000 }

/** `silent`: nothing comes. `slow`: it comes, in drops. */
type Stall = 'silent' | 'slow'

/**
 * Whether what was asked for comes, as far as that is for the registry to do: the time in which we take nothing is not
 * its own. Times are milliseconds since some moment.
 */
export class FetchPace {
  /** Undefined while the registry owes nothing. */
  #owesSince: number | undefined
  #owedMs = 0
  /** Of `#owedMs`: when the last bytes came, and when the count began. */
  #lastAt = 0
  #countedFrom = 0
  #received = 0

  constructor(
    private readonly limits: PaceLimits,
    now: number
  ) {
    this.#owesSince = now
  }

  /** Something is asked for: its time begins anew. Of requests there are few. */
  asked(now: number): void {
    this.#owesSince = now
    this.#owedMs = this.#lastAt = this.#countedFrom = this.#received = 0
  }

  received(bytes: number, now: number): void {
    if (bytes === 0) return
    this.#received += bytes
    this.#lastAt = this.#owed(now)
  }

  /** We are busy with what has come. */
  rest(now: number): void {
    this.#owedMs = this.#owed(now)
    this.#owesSince = undefined
  }

  /** We wait for more. */
  goOn(now: number): void {
    this.#owesSince ??= now
  }

  stall(now: number): Stall | undefined {
    const owed = this.#owed(now)
    const { seconds, bytesPerSecond } = this.limits
    if (owed - this.#lastAt >= seconds * 1000) return 'silent'
    if (owed - this.#countedFrom < seconds * 1000) return undefined
    if (this.#received < seconds * bytesPerSecond) return 'slow'
    this.#countedFrom = owed
    this.#received = 0
    return undefined
  }

  #owed(now: number): number {
    return this.#owedMs + (this.#owesSince === undefined ? 0 : now - this.#owesSince)
  }
}

/** Ends a fetch when next to nothing comes: by its signal, and by what `reasonOf` makes of the error then. */
export class PaceWatch {
  readonly #pace: FetchPace
  readonly #stalled = new AbortController()
  readonly #stop: () => void
  readonly signal: AbortSignal

  constructor(clock: Pick<Clock, 'every'>, limits: PaceLimits, signal: AbortSignal) {
    this.#pace = new FetchPace(limits, performance.now())
    this.signal = AbortSignal.any([signal, this.#stalled.signal])
    this.#stop = clock.every(Math.min(1000, limits.seconds * 100), () => {
      const stall = this.#pace.stall(performance.now())
      if (stall !== undefined) this.#stalled.abort(stallFailure(stall, limits))
    })
  }

  /** We are busy with something else than asking. */
  rest(): void {
    this.#pace.rest(performance.now())
  }

  asked(): void {
    this.#pace.asked(performance.now())
  }

  /** Passes on what comes, and counts it. A slow reader does not count as a slow registry. */
  async *count(body: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    for await (const chunk of body) {
      this.#pace.received(chunk.length, performance.now())
      this.#pace.rest(performance.now())
      yield chunk
      this.#pace.goOn(performance.now())
    }
  }

  /** Why it failed: the stall, where that has ended it. */
  reasonOf(error: unknown): unknown {
    return this.#stalled.signal.aborted ? this.#stalled.signal.reason : error
  }

  end(): void {
    this.#stop()
  }
}

const stallFailure = (stall: Stall, { seconds, bytesPerSecond }: PaceLimits): RegistryFailure =>
  new RegistryFailure(
    stall,
    stall === 'silent'
      ? `for ${seconds} seconds nothing came`
      : `less than ${bytesPerSecond} bytes a second for ${seconds} seconds`
  )
