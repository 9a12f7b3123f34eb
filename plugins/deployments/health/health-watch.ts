import { setMaxListeners } from 'node:events'
import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerRuntime } from 'busbar/api/containers'
import { bounded, type Clock, FairQueue, type Log, runRepeatedly } from 'busbar/sdk'
import type { DeploymentStore, WatchedDeployment } from '../records/deployment-store.js'
import { decideHealth, failuresInARow } from './health-decision.js'
import { askHttp } from './http-check.js'
import { KnownAddresses } from './known-addresses.js'

/** How many are asked at once: an answer may take five seconds. */
const askedAtOnce = { most: 64, maxPerOwner: 16 }
/** Longer than the engine may be silent, and the container after it. */
const questionMs = 90_000
const recordMs = 60_000
const lookMs = 120_000

interface HealthWatchParts {
  readonly store: Pick<DeploymentStore, 'watched' | 'change'>
  readonly registry: Pick<ApplicationRegistry, 'followHealth'>
  readonly runtime: Pick<ContainerRuntime, 'list' | 'dial' | 'events'>
  readonly clock: Clock
  readonly log: Log
  readonly intervalMs: number
}

interface Watched extends WatchedDeployment {
  readonly containerId: string
  /** Known from an earlier look: the engine was not asked whether it still runs. */
  readonly isRemembered: boolean
}

/**
 * Checks running containers, by the `http` check they were deployed with, while any process of the installation lives.
 * Checks by a command are the engine's: its events tell.
 *
 * Containers that are known are not looked for again: to list them the engine is asked about each, which costs as much as
 * the check itself, and who asks one that has gone is told.
 *
 * Each look lets all be asked that are not being asked already. It waits for none of them: what hangs is asked less
 * often itself, and takes turns from its owner's others at most.
 */
export class HealthWatch {
  readonly #parts: HealthWatchParts
  /** What the last look has found, by deployment. */
  #watched: ReadonlyMap<string, Watched> = new Map()
  /** By deployment. */
  readonly #containers = new Map<string, string>()
  /** By deployment; what has never failed is not kept. */
  readonly #failures = new Map<string, number>()
  readonly #addresses: KnownAddresses

  constructor(parts: HealthWatchParts) {
    this.#parts = parts
    this.#addresses = new KnownAddresses(parts.runtime)
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, intervalMs } = this.#parts
    const queue = new FairQueue(askedAtOnce)
    const asking = new Set<Promise<void>>()
    const begin = (): void => {
      while (!signal.aborted) {
        const turn = queue.take()
        if (turn === undefined) return
        const question = this.#question(turn.id, signal).finally(() => {
          asking.delete(question)
          queue.end(turn)
          begin()
        })
        asking.add(question)
      }
    }
    const look = async (): Promise<void> => {
      await this.#look(signal)
      for (const { id, owner_id: owner } of this.#watched.values()) queue.add({ owner, id })
      begin()
    }
    // Each question listens to it.
    setMaxListeners(0, signal)
    const following = this.#addresses.follow(signal).catch((error: unknown) => {
      if (!signal.aborted)
        log.warn(
          { err: error },
          'what happens to containers cannot be followed; each is looked for at each check'
        )
    })
    await runRepeatedly(look, {
      everyMs: intervalMs,
      clock,
      signal,
      onError: error => log.warn({ err: error }, 'the health of the applications could not be looked at')
    })
    await Promise.all([following, ...asking])
  }

  async #look(signal: AbortSignal): Promise<void> {
    this.#watched = await bounded(async () => await this.#find(), {
      ms: lookMs,
      signal,
      what: 'the list of what runs'
    })
    for (const id of this.#failures.keys()) if (!this.#watched.has(id)) this.#failures.delete(id)
  }

  async #find(): Promise<ReadonlyMap<string, Watched>> {
    const { store, runtime } = this.#parts
    const watched = await store.watched()
    const ids = new Set(watched.map(({ id }) => id))
    for (const id of this.#containers.keys()) if (!ids.has(id)) this.#containers.delete(id)
    const remembered = new Set(this.#containers.keys())
    if (remembered.size < ids.size)
      for (const { id: containerId, status, owner } of await runtime.list({})) {
        const id = owner.deploymentId ?? ''
        if (status === 'running' && ids.has(id) && !remembered.has(id)) this.#containers.set(id, containerId)
      }
    return new Map(
      watched.flatMap(deployment => {
        const containerId = this.#containers.get(deployment.id)
        return containerId === undefined
          ? []
          : [[deployment.id, { ...deployment, containerId, isRemembered: remembered.has(deployment.id) }]]
      })
    )
  }

  /** Ends in time, and never rejects. */
  async #question(id: string, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#parts
    const asked = this.#watched.get(id)
    if (asked === undefined) return
    const { containerId, http_check: check, isRemembered } = asked
    try {
      const { isHealthy, saw, cause } = await bounded(
        async () => await askHttp(containerId, check, { runtime: this.#addresses, clock, signal }),
        { ms: questionMs, signal, what: 'the health check' }
      )
      signal.throwIfAborted()
      if (!isHealthy) this.#addresses.forget(containerId)
      // It has gone, or does not run any more; the next look finds out. What it has just found is believed.
      if (cause !== undefined && this.#containers.get(id) === containerId) {
        this.#containers.delete(id)
        if (isRemembered) return
      }
      const deployment = this.#watched.get(id)
      // It may have been replaced since, or started anew.
      if (deployment?.containerId !== containerId) return
      await bounded(async () => await this.#conclude(deployment, isHealthy, saw), {
        ms: recordMs,
        signal,
        what: 'the record of a health check'
      })
    } catch (error) {
      if (!signal.aborted)
        log.warn({ err: error, deploymentId: id }, 'the health of an application could not be looked at')
    }
  }

  async #conclude(
    {
      id,
      application_id: applicationId,
      application_status: applicationStatus,
      health_status: healthStatus,
      http_check: check
    }: Watched,
    isHealthy: boolean,
    saw: string
  ): Promise<void> {
    const { store, registry, clock, log } = this.#parts
    const decision = decideHealth(
      { applicationStatus, healthStatus, failures: this.#failures.get(id) ?? 0 },
      isHealthy
    )
    if (decision.failures > 0) this.#failures.set(id, decision.failures)
    else this.#failures.delete(id)
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
  }
}
