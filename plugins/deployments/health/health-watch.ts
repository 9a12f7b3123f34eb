import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/runtime-docker'
import { type Clock, type Log, runRepeatedly } from 'busbar/sdk'
import type { DeploymentStore, WatchedDeployment } from '../records/deployment-store.js'
import { decideHealth, failuresInARow } from './health-decision.js'
import { askHttp } from './http-check.js'

/** How many are asked at once: an answer may take five seconds. */
const askedAtOnce = 16

interface HealthWatchParts {
  readonly store: Pick<DeploymentStore, 'watched' | 'change'>
  readonly registry: Pick<ApplicationRegistry, 'followHealth'>
  readonly runtime: Pick<ContainerRuntime, 'list' | 'dial'>
  readonly clock: Clock
  readonly log: Log
  readonly intervalMs: number
}

/**
 * Asks what runs whether it is well, by the `http` check it was deployed with, for as long as one process lives.
 * Checks by a command are the engine's: its events tell.
 */
export class HealthWatch {
  readonly #parts: HealthWatchParts
  /** By deployment; what has never failed is not kept. */
  #failures: ReadonlyMap<string, number> = new Map()

  constructor(parts: HealthWatchParts) {
    this.#parts = parts
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, intervalMs } = this.#parts
    await runRepeatedly(async () => await this.#round(signal), {
      everyMs: intervalMs,
      clock,
      signal,
      onError: error => log.warn({ err: error }, 'the health of the applications could not be looked at')
    })
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { store, runtime } = this.#parts
    const watched = await store.watched()
    const failures = new Map<string, number>()
    if (watched.length > 0) {
      const containers = new Map(
        (await runtime.list({}))
          .filter(({ status }) => status === 'running')
          .map(({ id, owner }) => [owner.deploymentId, id])
      )
      const rest = watched.values()
      const worker = async (): Promise<void> => {
        for (const deployment of rest) {
          signal.throwIfAborted()
          const containerId = containers.get(deployment.id)
          if (containerId === undefined) continue
          const inARow = await this.#ask(deployment, containerId, signal)
          if (inARow > 0) failures.set(deployment.id, inARow)
        }
      }
      await Promise.all(Array.from({ length: Math.min(askedAtOnce, watched.length) }, worker))
    }
    this.#failures = failures
  }

  /** How often in a row it has failed now. */
  async #ask(deployment: WatchedDeployment, containerId: string, signal: AbortSignal): Promise<number> {
    const { store, registry, runtime, clock, log } = this.#parts
    const {
      id,
      application_id: applicationId,
      application_status: applicationStatus,
      health_status: healthStatus,
      http_check: check
    } = deployment
    const { isHealthy, saw } = await askHttp(containerId, check, { runtime, clock, signal })
    signal.throwIfAborted()
    const decision = decideHealth(
      { applicationStatus, healthStatus, failures: this.#failures.get(id) ?? 0 },
      isHealthy
    )
    if (decision.healthStatus !== undefined) {
      const message = `GET ${check.path} ${saw}${isHealthy ? '' : `, ${failuresInARow} times in a row without what was expected`}`
      await store.change(id, {
        health_status: decision.healthStatus,
        health_message: message,
        health_checked_at: clock.now()
      })
      log.info({ applicationId, deploymentId: id, health: decision.healthStatus }, message)
    }
    if (decision.tell !== undefined) await registry.followHealth(applicationId, id, decision.tell)
    return decision.failures
  }
}
