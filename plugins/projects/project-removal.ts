import type {
  Clock,
  Contributions,
  Database,
  DormantPlugins,
  Events,
  Jobs,
  Log,
  ProjectFactsCache,
  Tx
} from 'busbar/sdk'
import {
  heldRemedy,
  type ProjectTeardown,
  projectDeleted,
  projectTeardown,
  removeWithDormant,
  runTeardown,
  tableHolding,
  teardownDelayMs
} from './api.js'
import type { ProjectStore } from './project-store.js'

export const teardownJob = 'teardown'
export interface TeardownPayload {
  readonly projectId: string
  readonly round: number
}

/** One at a time of one owner: each may take minutes, and others wait for a worker too. */
export async function enqueueTeardown(
  { jobs, store }: { readonly jobs: Jobs; readonly store: Pick<ProjectStore, 'facts'> },
  payload: TeardownPayload,
  { runAt, tx }: { readonly runAt?: Date; readonly tx?: Tx } = {}
): Promise<void> {
  const { projectId } = payload
  const queue = `teardown:${(await store.facts(projectId))?.ownerId ?? projectId}`
  await jobs.enqueue(
    teardownJob,
    payload,
    { key: projectId, queue, ...(runAt !== undefined && { runAt }) },
    tx
  )
}

interface ProjectRemovalParts {
  readonly store: ProjectStore
  readonly db: Database
  readonly jobs: Jobs
  readonly events: Events
  readonly facts: ProjectFactsCache
  readonly clock: Clock
  readonly log: Log
  readonly teardowns: Contributions<ProjectTeardown>
  readonly dormant: DormantPlugins
}

/** Takes a project apart that has been marked for deletion. */
export class ProjectRemoval {
  constructor(private readonly parts: ProjectRemovalParts) {}

  /** Takes up what an earlier process left, even where its job has run out of attempts. */
  async resume(): Promise<void> {
    const { store, jobs } = this.parts
    for (const projectId of await store.deleting())
      await enqueueTeardown({ jobs, store }, { projectId, round: 0 })
  }

  /** One round: everything is removed, or the next round is in the queue. */
  async run({ projectId, round }: TeardownPayload, signal: AbortSignal): Promise<void> {
    const { store, jobs, clock, log } = this.parts
    if (!(await store.isDeleting(projectId))) return
    try {
      await this.#takeApart(projectId, signal)
    } catch (error) {
      if (signal.aborted) throw error
      const table = tableHolding(error)
      const delayMs = teardownDelayMs(round)
      if (table === null)
        log.error(
          { err: error, projectId, round, delayMs },
          'the project is not removed yet: a step of the clean-up failed'
        )
      else
        log.warn(
          { projectId, table, round, delayMs },
          `the project is not removed yet: ${table} holds rows of it; ${heldRemedy(table)}`
        )
      await enqueueTeardown(
        { jobs, store },
        { projectId, round: round + 1 },
        { runAt: new Date(clock.now().getTime() + delayMs) }
      )
    }
  }

  async #takeApart(projectId: string, signal: AbortSignal): Promise<void> {
    const { store, db, events, facts, teardowns, dormant } = this.parts
    await removeWithDormant(dormant, { point: projectTeardown, id: projectId, signal }, async () => {
      await runTeardown(teardowns, projectId, signal)
      await db.transaction(async tx => {
        if (!(await store.remove(projectId, tx))) return
        await events.emit(projectDeleted, { projectId }, tx)
        await facts.invalidate(projectId, tx)
      })
    })
  }
}
