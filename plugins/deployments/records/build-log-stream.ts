import type { SseFrame } from 'busbar/sdk'
import { buildLogPieces } from './build-log.js'
import type { BuildLogPoll } from './build-log-poll.js'
import type { DeploymentLogStore } from './deployment-log-store.js'
import { isActive } from './deployment-state.js'
import type { DeploymentStore } from './deployment-store.js'

interface StreamParts {
  readonly store: DeploymentStore
  readonly logs: DeploymentLogStore
  /** Of all streams of the process. */
  readonly poll: BuildLogPoll
}

/** A log may be replayed to many readers who take their time: each holds this many of its pieces, not all of it. */
const replayedAtOnce = 16

/**
 * The build log as Server-Sent Events. A deployment that has ended is replayed; of one under way come
 * the lines from now on (the record has those before).
 */
export async function* streamBuildLog(
  { projectId, deploymentId }: { readonly projectId: string; readonly deploymentId: string },
  { store, logs, poll }: StreamParts,
  signal: AbortSignal
): AsyncGenerator<SseFrame> {
  let nextSeq = await logs.nextSeq(deploymentId)
  const first = await store.get(projectId, deploymentId)
  if (first === undefined) return
  if (!isActive(first.status)) {
    for await (const piece of buildLogPieces(logs, deploymentId, replayedAtOnce)) yield* linesOf(piece)
    if (first.error_message !== null) yield { event: 'error', data: first.error_message }
    yield { event: 'done', data: `build ${first.status}` }
    return
  }
  while (!signal.aborted) {
    // The state first: when it has ended, what is read next is all there will be.
    const now = await poll.next(deploymentId)
    const isOver = now === undefined || !isActive(now.status)
    if (isOver || now.next_seq > nextSeq) {
      for (const chunk of await poll.read(deploymentId, nextSeq)) {
        nextSeq = chunk.seq + 1
        yield* linesOf(chunk.text)
      }
    }
    if (isOver) {
      if (now !== undefined && now.error_message !== null) yield { event: 'error', data: now.error_message }
      yield { event: 'done', data: 'build log stream ended' }
      return
    }
  }
}

function* linesOf(text: string): Generator<SseFrame> {
  let start = 0
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', start)) {
    if (end > start) yield { data: text.slice(start, end) }
    start = end + 1
  }
  if (start < text.length) yield { data: text.slice(start) }
}
