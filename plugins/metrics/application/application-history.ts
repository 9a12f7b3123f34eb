import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import { percentOf } from '../host/host-reading.js'
import { readRange, tierFor } from '../time-range.js'
import {
  type ApplicationHistoryStore,
  type ApplicationPoint,
  type ApplicationPointRow,
  applicationTiers
} from './application-history-store.js'
import type { ApplicationSamples, Sample } from './application-samples.js'
import type { ApplicationStore, RunningApplication } from './application-store.js'
import { ratesBetween } from './container-usage.js'

/** How often each application is measured, as long as there are no more than can be measured in that time. */
const measureEveryMs = 60_000
const lookEveryMs = 2_000
/** Four a second, so that what it costs has a bound: of a thousand applications each has its turn every four minutes. */
const measuredPerLook = 8
const listEveryMs = 60_000
const writeEveryMs = 10_000
const tidyEveryMs = 600_000
/** What an outage of the database leaves unwritten, up to this, is written after it. */
const mostWaiting = 10_000
/** An average over more than that, as after a machine has slept, is of no time at all. */
const longestBetweenMs = 3_600_000

interface ApplicationHistoryParts {
  readonly store: ApplicationHistoryStore
  readonly applications: ApplicationStore
  readonly samples: Pick<ApplicationSamples, 'sample'>
  readonly clock: Clock
  readonly log: Log
  readonly retentionHours: number
}

interface Listed {
  readonly application: RunningApplication
  /** When it was measured last, by `Clock.elapsed`. */
  askedAt: number
  /** What the next point is measured from. */
  before: Sample | undefined
}

/** Keeps what applications have used: measured one after another, a few at a time, whether somebody looks or not. */
export class ApplicationHistory {
  /** Those that run. */
  #listed = new Map<string, Listed>()
  #waiting: ApplicationPoint[] = []
  readonly #failing = new Set<string>()

  constructor(private readonly parts: ApplicationHistoryParts) {}

  /** At most a thousand points, the oldest first. */
  async read(
    applicationId: string,
    query: { readonly range?: string; readonly from?: string; readonly to?: string }
  ): Promise<ApplicationPointRow[]> {
    const { store, clock } = this.parts
    const now = clock.now()
    const range = readRange(query, now)
    return await store.read(applicationId, range, tierFor(applicationTiers, range, now))
  }

  async remove(applicationId: string): Promise<void> {
    await this.parts.store.remove(applicationId)
  }

  /** Measures and writes until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, store, retentionHours } = this.parts
    if (retentionHours === 0) return
    const tidy = async (): Promise<void> => {
      await store.rollUp(clock.now())
      await store.prune(retentionHours, clock.now())
    }
    const steps = [
      new Periodic('the applications cannot be listed for their history', listEveryMs, () => this.#list()),
      new Periodic('the history of applications cannot be written', writeEveryMs, () => this.#write()),
      new Periodic('the history of applications cannot be made coarser', tidyEveryMs, tidy)
    ]
    await runRepeatedly(
      async () => {
        for (const { what, work } of steps.filter(step => step.isDue(clock.elapsed()))) {
          try {
            await work()
            this.#noteEnd(what)
          } catch (error) {
            if (!signal.aborted) this.#noteFailure(what, error)
          }
        }
        this.#measureDue()
      },
      {
        everyMs: lookEveryMs,
        clock,
        signal,
        onError: error => {
          this.#noteFailure('the history of applications cannot be kept', error)
        }
      }
    )
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    await this.#write().catch(() => {})
  }

  async #list(): Promise<void> {
    const running = await this.parts.applications.running()
    const listed = this.#listed
    this.#listed = new Map(
      running.map(application => {
        const known = listed.get(application.id)
        return [
          application.id,
          { application, askedAt: known?.askedAt ?? Number.NEGATIVE_INFINITY, before: known?.before }
        ]
      })
    )
  }

  /** Does not wait for the engine. */
  #measureDue(): void {
    const now = this.parts.clock.elapsed()
    const due = [...this.#listed.values()]
      .filter(({ askedAt }) => now - askedAt >= measureEveryMs)
      .sort((a, b) => a.askedAt - b.askedAt)
      .slice(0, measuredPerLook)
    for (const listed of due) {
      listed.askedAt = now
      void this.#measure(listed)
    }
  }

  /** Never rejects. */
  async #measure({ application }: Listed): Promise<void> {
    const { id } = application
    try {
      const sample = await this.parts.samples.sample(application)
      this.#noteEnd(measuring)
      const listed = this.#listed.get(id)
      if (listed === undefined) return
      const { before } = listed
      listed.before = sample
      const point =
        sample === undefined || before?.containerId !== sample.containerId
          ? undefined
          : pointOf(id, before, sample)
      if (point !== undefined) this.#waiting.push(point)
      if (this.#waiting.length > mostWaiting) this.#waiting.shift()
    } catch (error) {
      this.#noteFailure(measuring, error)
    }
  }

  async #write(): Promise<void> {
    const points = this.#waiting
    this.#waiting = []
    try {
      await this.parts.store.add(points)
    } catch (error) {
      this.#waiting = [...points, ...this.#waiting].slice(-mostWaiting)
      throw error
    }
  }

  #noteFailure(what: string, error: unknown): void {
    if (!this.#failing.has(what)) this.parts.log.warn({ err: error }, what)
    this.#failing.add(what)
  }

  #noteEnd(what: string): void {
    if (this.#failing.delete(what)) this.parts.log.info(`over: ${what}`)
  }
}

const measuring = 'applications cannot be measured for their history'

/** A part of what is repeated, which has its turn less often. */
class Periodic {
  #ranAt = Number.NEGATIVE_INFINITY

  /** `what`: of a failure. */
  constructor(
    readonly what: string,
    private readonly everyMs: number,
    readonly work: () => Promise<void>
  ) {}

  /** It counts as done then. */
  isDue(now: number): boolean {
    if (now - this.#ranAt < this.everyMs) return false
    this.#ranAt = now
    return true
  }
}

/** Undefined where the container was started anew between the two, or they are too far apart. */
function pointOf(
  applicationId: string,
  before: Sample,
  { stats, takenAt }: Sample
): ApplicationPoint | undefined {
  const rates = ratesBetween(before.stats, stats)
  if (rates === undefined || takenAt.getTime() - before.takenAt.getTime() > longestBetweenMs) return undefined
  return {
    applicationId,
    recordedAt: takenAt,
    cpuPercent: percentOf(rates.cores),
    memoryBytes: stats.memoryBytes,
    memoryLimitBytes: stats.memoryLimitBytes,
    receivedBytes: rates.receivedBytes,
    sentBytes: rates.sentBytes
  }
}
