import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime, ContainerState } from 'busbar/api/runtime-docker'
import type { Jobs } from 'busbar/sdk'
import type { TrafficTarget } from '../api.js'
import { queueOf } from '../records/deployment-records.js'
import type { DeploymentStore } from '../records/deployment-store.js'
import { enqueueTidy, type Tidying } from '../tidying.js'
import type { Traffic } from '../traffic/traffic.js'
import { candidateName } from './container-name.js'
import { drainMs } from './drain-limit.js'

export const settleJob = 'settle'
export interface SettlePayload {
  readonly applicationId: string
}

/** In the queue of the application's deploys: nothing is switched meanwhile. */
export async function enqueueSettle(jobs: Jobs, applicationId: string): Promise<void> {
  const payload: SettlePayload = { applicationId }
  await jobs.enqueue(settleJob, payload, { key: applicationId, queue: queueOf(applicationId) })
}

interface SettlingParts {
  readonly store: DeploymentStore
  readonly registry: ApplicationRegistry
  readonly runtime: ContainerRuntime
  readonly traffic: Traffic
  readonly tidying: Tidying
  readonly jobs: Jobs
}

/**
 * Makes the engine and the traffic routers agree with the record again, where a deploy could not be taken back
 * because the engine, or the database, was away, or a router was not there for the switch: what serves bears the name and gets the requests.
 */
export class Settling {
  readonly #parts: SettlingParts
  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  async application(applicationId: string): Promise<void> {
    const { registry, runtime, tidying, traffic } = this.#parts
    const application = await registry.deployable(applicationId)
    if (application === undefined) return
    const survey = await tidying.survey(applicationId)
    // A deploy that came so far and has lost its process is taken up in this queue too, and puts things right itself.
    if (survey.some(({ fate }) => fate === 'underWay')) return
    const serving = survey.find(({ fate }) => fate === 'serves')?.container
    if (serving !== undefined) {
      const bearer = survey.find(
        ({ container }) => container.name === application.slug && container.id !== serving.id
      )?.container
      if (bearer !== undefined)
        await runtime.rename(
          bearer.id,
          candidateName(application.slug, bearer.owner.deploymentId ?? bearer.id)
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
    await enqueueTidy(this.#parts, applicationId)
  }
}

/** Where requests to a container of an earlier deploy go; null when it does not run. */
export async function targetOf(
  container: ContainerState | undefined,
  { runtime, store }: Pick<SettlingParts, 'runtime' | 'store'>
): Promise<TrafficTarget | null> {
  const deploymentId = container?.owner.deploymentId
  if (container === undefined || deploymentId === undefined) return null
  const port = (await store.row(deploymentId))?.container_port
  if (typeof port !== 'number' || (await runtime.inspect(container.id))?.status !== 'running') return null
  return { deploymentId, containerId: container.id, ...(await runtime.dial(container.id, port)) }
}
