import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { Jobs } from 'busbar/sdk'
import type { TrafficTarget } from '../api.js'
import { type Cleanup, enqueueCleanup } from '../cleanup.js'
import { queueOf } from '../records/deployment-records.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import type { Traffic } from '../traffic/traffic.js'
import { candidateName } from './container-name.js'
import { drainMs } from './drain-limit.js'

export const reconcileJob = 'reconcile'
export interface ReconcilePayload {
  readonly applicationId: string
}

/** In the queue of the application's deploys: nothing is switched meanwhile. */
export async function enqueueReconcile(jobs: Jobs, applicationId: string): Promise<void> {
  const payload: ReconcilePayload = { applicationId }
  await jobs.enqueue(reconcileJob, payload, { key: applicationId, queue: queueOf(applicationId) })
}

interface ReconcilerParts {
  readonly store: DeploymentStore
  readonly registry: ApplicationRegistry
  readonly runtime: ContainerRuntime
  readonly traffic: Traffic
  readonly cleanup: Cleanup
  readonly jobs: Jobs
}

/**
 * Makes the engine and the traffic routers agree with the record again, where a deploy could not be rolled back
 * because the engine or the database was unreachable, or a router was off during the switch: the serving container
 * gets the application's slug as its name, and its requests.
 */
export class ServingReconciler {
  readonly #parts: ReconcilerParts
  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  async application(applicationId: string): Promise<void> {
    const { registry, runtime, cleanup, traffic } = this.#parts
    const application = await registry.deployable(applicationId)
    if (application === undefined) return
    const containers = await cleanup.containersByRole(applicationId)
    // A deploy in progress that lost its process is resumed in this queue too, and puts this right itself.
    if (containers.some(({ role }) => role === 'in-progress')) return
    const serving = containers.find(({ role }) => role === 'serving')?.container
    if (serving !== undefined) {
      const holder = containers.find(
        ({ container }) => container.name === application.slug && container.id !== serving.id
      )?.container
      if (holder !== undefined)
        await runtime.rename(
          holder.id,
          candidateName(application.slug, holder.owner.deploymentId ?? holder.id)
        )
      await runtime.rename(serving.id, application.slug)
      const target = await targetOf(serving, this.#parts)
      if (target !== null) {
        const routers = traffic.routers()
        await traffic.prepare(routers, applicationId)
        const { drain, fault } = await traffic.revert(routers, applicationId, target)
        if (fault !== undefined) throw fault
        await drain(drainMs)
      }
    }
    await enqueueCleanup(this.#parts, applicationId)
  }
}

/** Where requests to a container of an earlier deploy go; null when it does not run. */
export async function targetOf(
  container: ContainerState | undefined,
  { runtime, store }: Pick<ReconcilerParts, 'runtime' | 'store'>
): Promise<TrafficTarget | null> {
  const deploymentId = container?.owner.deploymentId
  if (container === undefined || deploymentId === undefined) return null
  const port = (await store.row(deploymentId))?.container_port
  if (typeof port !== 'number' || (await runtime.inspect(container.id))?.status !== 'running') return null
  return { deploymentId, containerId: container.id, ...(await runtime.dial(container.id, port)) }
}
