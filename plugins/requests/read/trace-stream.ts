import type { SseFrame } from 'busbar/sdk'
import type { FeedStore } from './feed-store.js'
import type { StoredTrace } from './history-store.js'
import type { TraceFeed } from './trace-feed.js'

interface StreamParts {
  readonly store: Pick<FeedStore, 'lastPosition'>
  readonly feed: TraceFeed
}

const positionForm = /^\d{1,15}$/

/**
 * What is stored from now on, of one application or of all, or behind the last event that the reader has (`lastEventId`). Resolves when
 * nothing that comes later can be missed.
 */
export async function streamTraces(
  applicationId: string | null,
  lastEventId: string | readonly string[] | undefined,
  { store, feed }: StreamParts,
  signal: AbortSignal
): Promise<AsyncGenerator<readonly SseFrame[]>> {
  const last = await store.lastPosition()
  const given = typeof lastEventId === 'string' && positionForm.test(lastEventId) ? Number(lastEventId) : last
  // One that is not there yet is of another database.
  return framesOf(applicationId, Math.min(given, last), feed, signal)
}

async function* framesOf(
  applicationId: string | null,
  from: number,
  feed: TraceFeed,
  signal: AbortSignal
): AsyncGenerator<readonly SseFrame[]> {
  for (let position = from; ; ) {
    const found = await feed.next({ applicationId, position }, signal)
    if (found === null) return
    position = found.at(-1)?.position ?? position
    yield found.map(frameOf)
  }
}

const frameOf = ({ position, ...trace }: StoredTrace): SseFrame => ({ id: String(position), data: trace })
