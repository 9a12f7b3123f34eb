import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import { type Clock, type Jobs, type Log, pause, runRepeatedly } from 'busbar/sdk'
import { type Cleanup, enqueueCleanup } from '../cleanup.js'
import type { DeploymentRecords } from '../records/deployment-records.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import { retryDuringOutage } from './database-outage.js'
import { enqueueReconcile } from './serving-reconciler.js'

const everyMs = 60_000
/** A deployment without progress for so long has lost its process or its job. */
const abandonedMs = 2 * 60_000
/** The process that works on a deployment notes it in its record every two seconds. */
const leftMs = 10_000

interface RecoveryParts {
  readonly store: DeploymentStore
  readonly records: DeploymentRecords
  readonly registry: ApplicationRegistry
  readonly cleanup: Cleanup
  readonly runtime: ContainerRuntime
  readonly imageService: ImageService
  readonly jobs: Jobs
  readonly clock: Clock
  readonly log: Log
}

/** Requeues active deployments that lost their process, and finds containers that no record accounts for. */
export class Recovery {
  readonly #parts: RecoveryParts
  constructor(parts: RecoveryParts) {
    this.#parts = parts
  }

  /** At the start every active deployment gets a job again; later only those without progress. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts
    await this.requeue(clock.now())
    const following = this.#followEngine(signal)
    await pause(clock, everyMs, signal)
    await runRepeatedly(async () => await this.requeue(new Date(clock.now().getTime() - abandonedMs)), {
      everyMs,
      clock,
      signal,
      onError: error =>
        log.error({ err: error }, 'deployments that lost their process could not be looked up')
    })
    await following
  }

  /** Whenever the engine is (again) reachable: finishes or undoes what could not be without it. */
  async #followEngine(signal: AbortSignal): Promise<void> {
    const { runtime, clock, log } = this.#parts
    for await (const event of runtime.events(signal)) {
      if (event.kind !== 'resync') continue
      const work = async (): Promise<void> => {
        if (event.outage !== undefined) await this.requeue(new Date(clock.now().getTime() - leftMs))
        await this.enqueueRepairs()
      }
      await retryDuringOutage(work, { clock, signal }).catch((error: unknown) => {
        if (!signal.aborted)
          log.warn(
            { err: error },
            'the containers left by earlier deploys could not be looked up; they are when the engine is back'
          )
      })
    }
  }

  /** One that has a job already is not done twice: the queue of its application lets one run at a time. */
  async requeue(before: Date): Promise<void> {
    const { store, records, log } = this.#parts
    for (const { id, application_id: applicationId, status } of await store.abandoned(before)) {
      if (status !== 'pending')
        log.warn({ deploymentId: id, applicationId, status }, 'a deployment lost its process and is resumed')
      await records.enqueue(id, applicationId)
    }
  }

  /** Enqueues a reconcile where a container does not serve, or serves under another name, and a cleanup where a build was cut off. */
  async enqueueRepairs(): Promise<void> {
    const { runtime, imageService, registry, cleanup, jobs } = this.#parts
    const steps = await imageService.buildSteps({})
    const built = new Set(steps.flatMap(({ owner }) => owner.applicationId ?? []))
    for (const applicationId of built) await enqueueCleanup(this.#parts, applicationId)
    const applicationIds = new Set((await runtime.list({})).flatMap(({ owner }) => owner.applicationId ?? []))
    for (const applicationId of applicationIds) {
      const application = await registry.deployable(applicationId)
      if (application === undefined) continue
      const found = await cleanup.containersByRole(applicationId)
      const isInOrder = found.every(
        ({ container, role }) =>
          role !== 'retired' &&
          role !== 'failed' &&
          (role !== 'serving' || container.name === application.slug)
      )
      if (!isInOrder) await enqueueReconcile(jobs, applicationId)
    }
  }
}
