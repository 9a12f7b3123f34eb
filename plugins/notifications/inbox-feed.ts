import { type Clock, LiveFeed, type Log } from 'busbar/sdk'
import type { InboxStore, Place, StoredNotification } from './inbox-store.js'

interface InboxFeedParts {
  readonly inbox: Pick<InboxStore, 'after'>
  readonly clock: Pick<Clock, 'every'>
  readonly log: Pick<Log, 'warn'>
}

/** What comes into inboxes, for all streams of this process. */
export class InboxFeed {
  readonly #feed: LiveFeed<Place, StoredNotification>

  constructor({ inbox, clock, log }: InboxFeedParts) {
    this.#feed = new LiveFeed({
      after: async (places, mostAtOnce) => await inbox.after(places, mostAtOnce),
      mostAtOnce: 50,
      what: 'new notifications',
      clock,
      log
    })
  }

  /** How many wait. */
  get readers(): number {
    return this.#feed.readers
  }

  /** What comes behind the place, in order, once there is something; null when the signal aborts, and when the plugin stops. */
  async next(place: Place, signal: AbortSignal): Promise<readonly StoredNotification[] | null> {
    return await this.#feed.next(place, signal)
  }

  /** Something has come for these users; null: for whomever. */
  wake(userIds: ReadonlySet<string> | null): void {
    this.#feed.wake(({ userId }) => userIds === null || userIds.has(userId))
  }

  close(): void {
    this.#feed.close()
  }
}
