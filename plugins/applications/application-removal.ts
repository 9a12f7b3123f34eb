import {
  heldRemedy,
  removeWithDormant,
  runTeardown,
  tableHolding,
  teardownDelayMs
} from 'busbar/api/projects'
import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import {
  type Clock,
  type Contributions,
  type Database,
  type DormantPlugins,
  type Events,
  isProblem,
  type Jobs,
  type Log,
  type ProjectId,
  type Tx
} from 'busbar/sdk'
import { applicationDeleted, applicationTeardown } from './api.js'
import { problems } from './problems.js'
import type { DoomedRow, RemovalStore } from './removal-store.js'

export const teardownJob = 'teardown'
export interface TeardownPayload {
  readonly applicationId: string
  readonly round: number
}

interface ApplicationRemovalParts {
  readonly store: RemovalStore
  readonly db: Database
  readonly jobs: Jobs
  readonly events: Events
  readonly clock: Clock
  readonly log: Log
  readonly teardowns: Contributions<{
    teardown(applicationId: string, context: { readonly signal: AbortSignal }): Promise<void>
  }>
  readonly runtime: { get(): ContainerRuntime | undefined }
  readonly dormant: DormantPlugins
}

const letGoMs = 15_000
const lookAgainMs = 100

/** Takes applications apart: what other plugins keep of them, their containers and images, the row last. */
export class ApplicationRemoval {
  constructor(private readonly parts: ApplicationRemovalParts) {}

  /** Invisible from now on; a durable job does the rest. */
  async delete(projectId: ProjectId, applicationId: string): Promise<{ status: string }> {
    const { store, db, clock } = this.parts
    await db.transaction(async tx => {
      if (!(await store.mark(projectId, applicationId, clock.now(), tx)))
        throw problems.notFound({ applicationId })
      await this.#enqueue({ applicationId, round: 0 }, { tx })
    })
    return { status: 'deleted' }
  }

  /** Takes up what an earlier process left, even where its job has run out of attempts. */
  async resume(): Promise<void> {
    const { store } = this.parts
    for (const applicationId of await store.all()) await this.#enqueue({ applicationId, round: 0 })
  }

  /** One round for one application and its previews: everything is removed, or the next round is in the queue. */
  async run({ applicationId, round }: TeardownPayload, signal: AbortSignal): Promise<void> {
    const { store, clock, log } = this.parts
    try {
      await this.#takeApart(await store.ofApplication(applicationId), signal)
    } catch (error) {
      if (signal.aborted) throw error
      const table = tableHolding(error)
      const delayMs = teardownDelayMs(round)
      if (table === null)
        log.error(
          { err: error, applicationId, round, delayMs },
          'the application is not removed yet: a step of the clean-up failed'
        )
      else
        log.warn(
          { applicationId, table, round, delayMs },
          `the application is not removed yet: ${table} holds rows of it; ${heldRemedy(table)}`
        )
      await this.#enqueue(
        { applicationId, round: round + 1 },
        { runAt: new Date(clock.now().getTime() + delayMs) }
      )
    }
  }

  /** One at a time of one owner: each takes seconds, and there may be hundreds. */
  async #enqueue(
    payload: TeardownPayload,
    { runAt, tx }: { readonly runAt?: Date; readonly tx?: Tx } = {}
  ): Promise<void> {
    const { store, jobs } = this.parts
    const { applicationId } = payload
    const queue = `teardown:${(await store.ownerOf(applicationId, tx)) ?? applicationId}`
    await jobs.enqueue(
      teardownJob,
      payload,
      { key: applicationId, queue, ...(runAt !== undefined && { runAt }) },
      tx
    )
  }

  /** This plugin's step in the removal of a project. */
  async teardownProject(projectId: string, signal: AbortSignal): Promise<void> {
    const { store, clock } = this.parts
    await store.markProject(projectId, clock.now())
    await this.#takeApart(await store.ofProject(projectId), signal)
  }

  /** One that fails does not keep the others; the first failure is thrown at the end. */
  async #takeApart(rows: readonly DoomedRow[], signal: AbortSignal): Promise<void> {
    const failures: unknown[] = []
    for (const row of rows) {
      signal.throwIfAborted()
      try {
        await this.#removeOne(row, signal)
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }

  async #removeOne(row: DoomedRow, signal: AbortSignal): Promise<void> {
    const { store, db, events, teardowns, dormant } = this.parts
    await removeWithDormant(dormant, { point: applicationTeardown, id: row.id, signal }, async () => {
      await runTeardown(teardowns, row.id, signal)
      await this.#removeContainers(row, signal)
      await db.transaction(async tx => {
        if (await store.remove(row.id, tx))
          await events.emit(applicationDeleted, { applicationId: row.id, projectId: row.project_id }, tx)
      })
    })
  }

  async #removeContainers(
    { id: applicationId, was_deployed: wasDeployed }: DoomedRow,
    signal: AbortSignal
  ): Promise<void> {
    const runtime = this.parts.runtime.get()
    if (runtime === undefined) {
      // Without the engine nothing can be left behind by an application that never ran.
      if (wasDeployed) throw problems.runtimeOff({ plugin: 'runtime-docker' })
      return
    }
    for (const container of await runtime.list({ applicationId })) await runtime.remove(container.id)
    for (const step of await runtime.buildSteps({ applicationId })) await runtime.remove(step.id)
    for (const image of await runtime.images({ applicationId })) {
      for (const reference of image.tags.length > 0 ? image.tags : [image.id])
        await this.#removeImage(runtime, reference, signal)
    }
  }

  /** The engine takes a build that was cancelled apart a moment later; until then its steps are in use. */
  async #removeImage(runtime: ContainerRuntime, reference: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.parts
    for (const end = clock.now().getTime() + letGoMs; ; ) {
      try {
        return await runtime.removeImage(reference)
      } catch (error) {
        if (isProblem(error) && error.status === 404) return
        if (!isProblem(error) || error.code !== 'E_IMAGE_IN_USE' || clock.now().getTime() >= end) throw error
      }
      await clock.sleep(lookAgainMs, signal)
    }
  }
}
