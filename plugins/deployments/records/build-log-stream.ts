import type { Clock, SseFrame } from 'busbar/sdk'
import { readBuildLog } from './build-log.js'
import type { DeploymentLogStore } from './deployment-log-store.js'
import { isActive } from './deployment-state.js'
import type { DeploymentStore } from './deployment-store.js'

/** The log is in the database, so that any process can stream it; it is looked at this often. */
const pollMs = 300

/**
 * The build log as Server-Sent Events. A deployment that has ended is replayed; of one under way come
 * the lines from now on (the record has those before).
 */
export async function* streamBuildLog(
  { projectId, deploymentId }: { readonly projectId: string; readonly deploymentId: string },
  {
    store,
    logs,
    clock
  }: { readonly store: DeploymentStore; readonly logs: DeploymentLogStore; readonly clock: Clock },
  signal: AbortSignal
): AsyncGenerator<SseFrame> {
  let nextSeq = await logs.nextSeq(deploymentId)
  const first = await store.get(projectId, deploymentId)
  if (first === undefined) return
  if (!isActive(first.status)) {
    yield* linesOf((await readBuildLog(logs, deploymentId)) ?? '')
    if (first.error_message !== null) yield { event: 'error', data: first.error_message }
    yield { event: 'done', data: `build ${first.status}` }
    return
  }
  while (!signal.aborted) {
    // The state first: when it has ended, what is read next is all there will be.
    const now = await store.get(projectId, deploymentId)
    for (const chunk of await logs.read(deploymentId, nextSeq)) {
      nextSeq = chunk.seq + 1
      yield* linesOf(chunk.text)
    }
    if (now === undefined || !isActive(now.status)) {
      if (now !== undefined && now.error_message !== null) yield { event: 'error', data: now.error_message }
      yield { event: 'done', data: 'build log stream ended' }
      return
    }
    await clock.sleep(pollMs, signal).catch(() => {})
  }
}

function* linesOf(text: string): Generator<SseFrame> {
  for (const line of text.split('\n')) if (line !== '') yield { data: line }
}
