import type { SseFrame } from 'busbar/sdk'
import { buildLogPieces } from './build-log.js'
import { type BuildLogPlace, eventIdOf } from './build-log-place.js'
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

interface Streamed {
  readonly projectId: string
  readonly deploymentId: string
  /** Where a reader who comes again has been. */
  readonly after?: BuildLogPlace | undefined
}

/**
 * The build log as Server-Sent Events. A deployment that has ended is replayed; of one under way come the lines from now
 * on (the record has those before). A reader who says where it has been gets what stands behind that, in either case.
 */
export async function* streamBuildLog(
  { projectId, deploymentId, after }: Streamed,
  { store, logs, poll }: StreamParts,
  signal: AbortSignal
): AsyncGenerator<SseFrame> {
  let nextSeq = after?.seq ?? (await logs.nextSeq(deploymentId))
  const first = await store.get(projectId, deploymentId)
  if (first === undefined) return
  if (!isActive(first.status)) {
    const from = { fromSeq: after?.seq ?? 0, pageLength: replayedAtOnce }
    for await (const { seq, text } of buildLogPieces(logs, deploymentId, from))
      yield* linesOf(text, seq, after)
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
        yield* linesOf(chunk.text, chunk.seq, after)
      }
    }
    if (isOver) {
      if (now !== undefined && now.error_message !== null) yield { event: 'error', data: now.error_message }
      yield { event: 'done', data: 'build log stream ended' }
      return
    }
  }
}

/** The lines of a piece, without those that the reader has. */
function* linesOf(text: string, seq: number | undefined, after?: BuildLogPlace): Generator<SseFrame> {
  const known = seq !== undefined && seq === after?.seq ? after.lines : 0
  let lines = 0
  let start = 0
  while (start < text.length) {
    const found = text.indexOf('\n', start)
    const end = found < 0 ? text.length : found
    if (end > start && ++lines > known)
      yield { ...(seq === undefined ? {} : { id: eventIdOf({ seq, lines }) }), data: text.slice(start, end) }
    start = end + 1
  }
}
