import type { RouteDirectory } from 'busbar/api/domains'
import type { Bus, OptionalHandle } from 'busbar/sdk'
import type { LiveTraces } from './live-traces.js'
import type { Trace, TraceDraft } from './trace.js'
import type { PlaceChange, TraceStore, Written } from './trace-store.js'
import { writtenSignal } from './written-signal.js'

interface WriterParts {
  readonly store: TraceStore
  readonly domains: OptionalHandle<RouteDirectory>
  readonly live: LiveTraces
  readonly bus: Bus
}

/** Stores requests of whichever source, with the application that each is for, and tells of them. */
export class TraceWriter {
  /** Since the plugin was started. */
  stored = 0
  #fault: string | null = null

  constructor(private readonly parts: WriterParts) {}

  /** Why the newest batch could not be stored; null where it could. */
  get fault(): string | null {
    return this.#fault
  }

  /** May be called again with the same after it has rejected. */
  async write(drafts: readonly TraceDraft[]): Promise<void> {
    await this.#write(drafts, async traces => await this.parts.store.write(traces))
  }

  /** With how far a log was read; false where another process has read on from there, and nothing was stored. */
  async writeRead(drafts: readonly TraceDraft[], change: PlaceChange): Promise<boolean> {
    return await this.#write(drafts, async traces => await this.parts.store.writeRead(traces, change))
  }

  async #write(
    drafts: readonly TraceDraft[],
    store: (traces: readonly Trace[]) => Promise<Written | undefined>
  ): Promise<boolean> {
    try {
      const traces = await this.#resolved(drafts)
      const written = await store(traces)
      this.#fault = null
      if (written === undefined) return false
      this.#tell(written.stored.flatMap(at => traces[at] ?? []))
      return true
    } catch (error) {
      this.#fault = error instanceof Error ? error.message : String(error)
      throw error
    }
  }

  /** Of what is on no route, and of everything while nobody has routes, the application is null. */
  async #resolved(drafts: readonly TraceDraft[]): Promise<readonly Trace[]> {
    const unresolved = drafts.filter(({ isUnresolved }) => isUnresolved)
    const directory = this.parts.domains.get()
    if (unresolved.length === 0 || directory === undefined) return drafts.map(({ trace }) => trace)
    const found = await directory.applicationsOf(
      unresolved.map(({ trace: { hostname }, path }) => ({ hostname, path }))
    )
    let next = 0
    return drafts.map(({ trace, isUnresolved }) =>
      isUnresolved ? { ...trace, application_id: found[next++] ?? null } : trace
    )
  }

  #tell(stored: readonly Trace[]): void {
    if (stored.length === 0) return
    this.stored += stored.length
    this.parts.live.publish(stored)
    const ids = new Set(stored.map(({ application_id: id }) => id))
    // Streams look by themselves now and then: nothing is lost where nobody hears it.
    this.parts.bus.signal(writtenSignal.topic, writtenSignal.write(ids)).catch(() => {})
  }
}
