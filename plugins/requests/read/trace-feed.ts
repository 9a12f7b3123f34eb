import { type Clock, LiveFeed, type Log } from 'busbar/sdk'
import type { FeedPlace, FeedStore } from './feed-store.js'
import type { StoredTrace } from './history-store.js'

interface FeedParts {
  readonly store: Pick<FeedStore, 'after'>
  readonly clock: Pick<Clock, 'every'>
  readonly log: Pick<Log, 'warn'>
}

/** Requests that have been stored, for all streams of this process. */
export class TraceFeed {
  readonly #feed: LiveFeed<FeedPlace, StoredTrace>
  /** Applications that were removed: there is nothing to come of them. */
  readonly #gone = new Set<string>()

  constructor({ store, clock, log }: FeedParts) {
    this.#feed = new LiveFeed({
      after: async (places, mostAtOnce) => await store.after(places, mostAtOnce),
      mostAtOnce: 100,
      what: 'new requests',
      clock,
      log
    })
  }

  /** What comes behind the place, in order, once there is something; null when the signal aborts, and when there is an end to it. */
  async next(place: FeedPlace, signal: AbortSignal): Promise<readonly StoredTrace[] | null> {
    if (place.applicationId !== null && this.#gone.has(place.applicationId)) return null
    return await this.#feed.next(place, signal)
  }

  /** Something has come for these applications; null: for whichever. */
  wake(applicationIds: ReadonlySet<string> | null): void {
    this.#feed.wake(
      ({ applicationId }) =>
        applicationId === null || applicationIds === null || applicationIds.has(applicationId)
    )
  }

  /** The application is being removed. */
  end(gone: string): void {
    this.#gone.add(gone)
    this.#feed.end(({ applicationId }) => applicationId === gone)
  }

  close(): void {
    this.#feed.close()
  }
}
