import type { DeploymentDirectory } from 'busbar/api/deployments'
import type { OptionalHandle } from 'busbar/sdk'
import type { LogArchive, LogSession } from '../api.js'
import type { LogHistory } from './log-history.js'
import type { LogPoll } from './log-poll.js'
import type { LogStore } from './log-store.js'
import { streamLogs } from './log-stream.js'
import type { RemovalStore } from './removal-store.js'
import type { StreamReads } from './stream-reads.js'

const mostSessions = 50

interface ArchiveParts {
  readonly store: LogStore
  readonly removals: RemovalStore
  readonly pages: LogHistory
  readonly reads: StreamReads
  readonly poll: LogPoll
  readonly deployments: OptionalHandle<DeploymentDirectory>
}

/** What others are given of what is kept. */
export class Archive implements LogArchive {
  constructor(private readonly parts: ArchiveParts) {}

  async history(...[sourceId, query, page, asking]: Parameters<LogArchive['history']>) {
    return await this.parts.pages.page(sourceId, query, page, asking)
  }

  async sessions(sourceId: string): Promise<LogSession[]> {
    const { store, deployments } = this.parts
    const rows = await store.sessions(sourceId, mostSessions)
    const ids = new Set(rows.flatMap(({ deployment_id: id }) => id ?? []))
    const known = new Map((await deployments.get()?.describe([...ids]))?.map(one => [one.id, one]))
    return rows.map(row => {
      const deployment = known.get(row.deployment_id ?? '')
      return {
        ...row,
        commit_sha: deployment?.commitSha ?? null,
        triggered_by: deployment?.triggeredBy ?? null,
        status: deployment?.status ?? null,
        started_at: deployment?.startedAt ?? null
      }
    })
  }

  async *stream(...[sourceId, options]: Parameters<LogArchive['stream']>) {
    const { store } = this.parts
    const { deploymentId, after, follow, signal } = options
    const containerId =
      options.containerId ??
      (deploymentId === undefined ? undefined : await store.containerOf(sourceId, deploymentId))
    const hasContainer = containerId !== undefined || deploymentId !== undefined
    yield* streamLogs({ sourceId, hasContainer, containerId, after, follow }, this.parts, signal)
  }

  async forget(sourceId: string): Promise<void> {
    const { removals } = this.parts
    do while (await removals.removeSome(sourceId));
    while (!(await removals.removeSource(sourceId)))
  }
}
