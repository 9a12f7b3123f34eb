import type { Clock, Log } from 'busbar/sdk'
import type { InboxStore, Place, StoredNotification } from './inbox-store.js'

/** What a reader is given at a time: what they do not take stays in the database. */
const mostAtOnce = 50
/** Of one statement. */
const mostPlaces = 1_000
/** A process may have missed that it was told. */
const lookAgainMs = 15_000

interface InboxFeedParts {
  readonly inbox: Pick<InboxStore, 'after'>
  readonly clock: Pick<Clock, 'every'>
  readonly log: Pick<Log, 'warn'>
}

interface Waiting extends Place {
  readonly resolve: (found: readonly StoredNotification[] | null) => void
}

/**
 * What comes into inboxes, for all streams of this process: they wait here, and one statement looks for as many as are to be
 * looked for. A reader who takes their time is not waiting, and holds no more than what they were given.
 */
export class InboxFeed {
  readonly #waiting = new Set<Waiting>()
  /** Who is to be looked for: what they wait for may be there. */
  readonly #due = new Set<Waiting>()
  #isLooking = false
  #isClosed = false
  readonly #stop: () => void

  constructor(private readonly parts: InboxFeedParts) {
    this.#stop = parts.clock.every(lookAgainMs, () => {
      this.wake(null)
    })
  }

  /** How many wait. */
  get readers(): number {
    return this.#waiting.size
  }

  /** What comes behind the place, in order, once there is something; null when the signal aborts, and when the plugin stops. */
  async next(place: Place, signal: AbortSignal): Promise<readonly StoredNotification[] | null> {
    if (signal.aborted || this.#isClosed) return null
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

  /** Something has come for these users; null: for whomever. */
  wake(userIds: ReadonlySet<string> | null): void {
    for (const waiting of this.#waiting)
      if (userIds === null || userIds.has(waiting.userId)) this.#due.add(waiting)
    this.#look()
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
        const found = await this.parts.inbox.after(looked, mostAtOnce)
        for (const [at, rows] of found.entries()) if (rows.length > 0) looked[at]?.resolve(rows)
      } catch (error) {
        // They wait on: the database is asked again in a while.
        this.parts.log.warn({ err: error }, 'new notifications could not be looked for')
      }
    }
  }
}
