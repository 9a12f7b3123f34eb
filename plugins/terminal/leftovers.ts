import { type Clock, isProblem, type Log } from 'busbar/sdk'
import { recentTimes, unattendedMs } from './overdue.js'
import type { SessionEnds } from './session-ends.js'
import type { SessionRow, SessionStore } from './session-store.js'

const lookEveryMs = 10_000
/** So many looks in a row at which nothing of a process has moved, and it is gone. Looks that fail count for nothing. */
const silentLooks = 3
/** Whoever ends a session has so long to do everything. */
const endingMs = 15_000
const firstPauseMs = 10_000
const lastPauseMs = 10 * 60_000

interface LeftoversParts {
  readonly store: SessionStore
  readonly ends: SessionEnds
  readonly clock: Clock
  readonly log: Log
}

interface Silence {
  readonly beat: string
  readonly looks: number
}

interface Failure {
  readonly pauseMs: number
  readonly againAt: number
}

/** Ends the sessions of processes that were killed, those that nobody has opened, and what could not be ended when it was due. */
export class Leftovers {
  #silences = new Map<string, Silence>()
  #failures = new Map<string, Failure>()

  constructor(private readonly parts: LeftoversParts) {}

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.parts
    // A process that is looked at by another one now may have been looked at for long: that is forgotten.
    this.#silences = new Map()
    while (!signal.aborted) {
      try {
        await this.#look(signal)
      } catch (error) {
        this.#silences = new Map()
        if (!signal.aborted)
          log.warn({ err: error }, 'terminal sessions could not be looked at; it is tried again')
      }
      await clock.sleep(lookEveryMs, signal).catch(() => {})
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { store, ends, clock } = this.parts
    for (const processId of await this.#goneProcesses())
      for (const row of await store.of(processId)) {
        await ends.record(row, 'platform-lost')
        await this.#clear(row)
        if (signal.aborted) return
      }
    for (const row of await store.unopened(recentTimes(clock.now(), unattendedMs))) {
      await ends.record(row, 'unopened')
      await this.#clear(row)
    }
    const uncleared = await store.uncleared(recentTimes(clock.now(), endingMs))
    this.#failures = new Map([...this.#failures].filter(([id]) => uncleared.some(row => row.id === id)))
    for (const row of uncleared) {
      if ((this.#failures.get(row.id)?.againAt ?? 0) <= clock.elapsed()) await this.#clear(row)
      if (signal.aborted) return
    }
  }

  async #goneProcesses(): Promise<readonly string[]> {
    const silences = new Map<string, Silence>()
    for (const { process_id: id, beat } of await this.parts.store.beats()) {
      const before = this.#silences.get(id)
      silences.set(id, { beat, looks: before?.beat === beat ? before.looks + 1 : 0 })
    }
    this.#silences = silences
    return [...silences].filter(([, { looks }]) => looks >= silentLooks).map(([id]) => id)
  }

  /**
   * What cannot be cleared is tried again: as soon as the engine is there, and ever more seldom where a container does not
   * let it be done, which may be so until that ends.
   */
  async #clear(row: SessionRow): Promise<void> {
    const { ends, clock, log } = this.parts
    try {
      await ends.clear(row)
      this.#failures.delete(row.id)
    } catch (error) {
      const isAway = isProblem(error) && error.code === 'E_ENGINE_UNREACHABLE'
      const before = this.#failures.get(row.id)?.pauseMs ?? firstPauseMs / 2
      const pauseMs = isAway ? firstPauseMs : Math.min(before * 2, lastPauseMs)
      this.#failures.set(row.id, { pauseMs, againAt: clock.elapsed() + pauseMs })
      log.warn(
        { err: error, session: row.id, container: row.container_id, pauseMs },
        'what was started in a terminal could not be ended; it is tried again'
      )
    }
  }
}
