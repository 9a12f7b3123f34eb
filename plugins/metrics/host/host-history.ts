import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import { readRange, tierFor } from '../time-range.js'
import type { HostPoint } from './host-reading.js'
import type { HostSampler } from './host-sampler.js'
import { type HostRow, type HostStore, hostTiers } from './host-store.js'

/** Of what was measured since, an end of the process loses no more. */
const writeEveryMs = 5_000
const rollUpEveryMs = 60_000
/** Ten minutes: what an outage of the database leaves unwritten is written after it. */
const mostWaiting = 600

interface HostHistoryParts {
  readonly sampler: HostSampler
  readonly store: HostStore
  readonly clock: Clock
  readonly log: Log
  readonly retentionHours: number
}

/** Keeps what is measured of the machine: all of it for two hours, and then less and less. */
export class HostHistory {
  #waiting: HostPoint[] = []
  #isWritten = true
  #runs = 0
  #stop: (() => void) | undefined

  constructor(private readonly parts: HostHistoryParts) {}

  /** At most a thousand points, the oldest first. */
  async read(query: {
    readonly range?: string
    readonly from?: string
    readonly to?: string
  }): Promise<HostRow[]> {
    const { store, clock } = this.parts
    const now = clock.now()
    const range = readRange(query, now)
    return await store.read(range, tierFor(hostTiers, range, now))
  }

  /** Measures and writes until `signal` aborts. With the database its turn may be lost: until it comes again, what is measured waits. */
  async run(signal: AbortSignal): Promise<void> {
    const { sampler, clock, log } = this.parts
    this.#runs++
    this.#stop ??= sampler.follow(point => {
      this.#add(point)
    })
    let rolledUpAt = Number.NEGATIVE_INFINITY
    try {
      await runRepeatedly(
        async () => {
          await this.#write()
          if (clock.elapsed() - rolledUpAt < rollUpEveryMs) return
          rolledUpAt = clock.elapsed()
          await this.#tidy()
        },
        {
          everyMs: writeEveryMs,
          clock,
          signal,
          onError: error => {
            if (this.#isWritten)
              log.warn(
                { err: error },
                'what is measured of the machine cannot be written; it waits, ten minutes of it at most'
              )
            this.#isWritten = false
          }
        }
      )
    } finally {
      this.#runs--
    }
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    this.#unfollow()
    await this.#write().catch(() => {})
  }

  #add(point: HostPoint): void {
    this.#waiting.push(point)
    if (this.#waiting.length <= mostWaiting) return
    this.#waiting.shift()
    // It is another process's turn by now.
    if (this.#runs === 0) this.#unfollow()
  }

  #unfollow(): void {
    this.#stop?.()
    this.#stop = undefined
  }

  async #write(): Promise<void> {
    const written = this.#waiting
    await this.parts.store.add(written)
    if (!this.#isWritten) this.parts.log.info('what is measured of the machine is written again')
    this.#isWritten = true
    // More may have come meanwhile, and the first may have gone.
    const last = written.at(-1)
    this.#waiting = last === undefined ? this.#waiting : this.#waiting.slice(this.#waiting.indexOf(last) + 1)
  }

  async #tidy(): Promise<void> {
    const { store, clock, retentionHours } = this.parts
    await store.rollUp(clock.now())
    await store.prune(retentionHours, clock.now())
  }
}
