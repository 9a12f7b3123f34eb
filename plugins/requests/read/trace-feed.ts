import type { Clock, Log } from 'busbar/sdk'
import type { FeedPlace, FeedStore } from './feed-store.js'
import type { StoredTrace } from './history-store.js'

/** What a reader is given at a time: what they do not take stays in the database. */
const mostAtOnce = 100
/** Of one statement. */
const mostPlaces = 1_000
/** A process may have missed that it was told. */
const lookAgainMs = 15_000

interface FeedParts {
  readonly store: Pick<FeedStore, 'after'>
  readonly clock: Pick<Clock, 'every'>
  readonly log: Pick<Log, 'warn'>
}

interface Waiting extends FeedPlace {
  readonly resolve: (found: readonly StoredTrace[] | null) => void
}

/**
 * What is stored, for all streams of this process: they wait here, and one statement looks for as many as are to be looked for. A reader
 * who takes their time is not waiting, and holds no more than what they were given.
 */
export class TraceFeed {
  readonly #waiting = new Set<Waiting>()
  /** Who is to be looked for: what they wait for may be there. */
  readonly #due = new Set<Waiting>()
  /** Applications that were removed: there is nothing to come of them. */
  readonly #gone = new Set<string>()
  #isLooking = false
  #isClosed = false
  readonly #stop: () => void

  constructor(private readonly parts: FeedParts) {
    this.#stop = parts.clock.every(lookAgainMs, () => {
      this.wake(null)
    })
  }

  /** What comes behind the place, in order, once there is something; null when the signal aborts, and when there is an end to it. */
  async next(place: FeedPlace, signal: AbortSignal): Promise<readonly StoredTrace[] | null> {
    const { applicationId } = place
    const isOver = applicationId !== null && this.#gone.has(applicationId)
    if (signal.aborted || this.#isClosed || isOver) return null
    return await new Promise(resolve => {
      const waiting: Waiting = {
        ...place,
        resolve: found => {
          this.#waiting.delete(waiting)
          this.#due.delete(waiting)
          signal.removeEventListener('abort', leave)
          resolve(found)
        }
      }
      const leave = (): void => {
        waiting.resolve(null)
      }
      signal.addEventListener('abort', leave)
      this.#waiting.add(waiting)
      // What came while the reader took what was before.
      this.#due.add(waiting)
      this.#look()
    })
  }

  /** Something has come for these applications; null: for whichever. */
  wake(applicationIds: ReadonlySet<string> | null): void {
    for (const waiting of this.#waiting) {
      const { applicationId } = waiting
      if (applicationId === null || applicationIds === null || applicationIds.has(applicationId))
        this.#due.add(waiting)
    }
    this.#look()
  }

  /** The application is being removed. */
  end(gone: string): void {
    this.#gone.add(gone)
    for (const waiting of [...this.#waiting]) if (waiting.applicationId === gone) waiting.resolve(null)
  }

  close(): void {
    this.#stop()
    this.#isClosed = true
    for (const waiting of [...this.#waiting]) waiting.resolve(null)
  }

  #look(): void {
    if (this.#isLooking || this.#due.size === 0) return
    this.#isLooking = true
    void this.#lookForAll().finally(() => {
      this.#isLooking = false
      // Between its last look and now.
      this.#look()
    })
  }

  async #lookForAll(): Promise<void> {
    while (this.#due.size > 0) {
      const looked = [...this.#due].slice(0, mostPlaces)
      for (const waiting of looked) this.#due.delete(waiting)
      try {
        const found = await this.parts.store.after(looked, mostAtOnce)
        for (const [at, rows] of found.entries()) if (rows.length > 0) looked[at]?.resolve(rows)
      } catch (error) {
        // They wait on: the database is asked again in a while.
        this.parts.log.warn({ err: error }, 'new requests could not be looked for')
      }
    }
  }
}
