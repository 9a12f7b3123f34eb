import type { ApplicationRegistry } from 'busbar/api/applications'
import type { BuildCachePruner, PreparedImages } from 'busbar/api/builds'
import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import type { Bus, Clock, Jobs, Log, Secrets } from 'busbar/sdk'
import type { DeploymentStatus } from './api.js'
import { openBuildLog } from './records/build-log.js'
import type { DeploymentLogStore } from './records/deployment-log-store.js'
import { isActive } from './records/deployment-state.js'
import type { DeploymentStore } from './records/deployment-store.js'

const stopGraceSeconds = 30
/** Of a process that SIGKILL has ended. */
const killedCode = 137

/** Successful deployments that keep record and image, the running one apart. */
const keptSuccessful = 10
const keptRecords = 200
const keptLogs = 50

export const cleanupJob = 'cleanup'
export interface CleanupPayload {
  readonly applicationId: string
}

/** Two at a time of one owner: an old version may take its whole grace to end, and others wait for a worker too. */
export async function enqueueCleanup(
  { jobs, store }: { readonly jobs: Jobs; readonly store: Pick<DeploymentStore, 'ownerOfApplication'> },
  applicationId: string
): Promise<void> {
  const payload: CleanupPayload = { applicationId }
  const ownerId = (await store.ownerOfApplication(applicationId)) ?? applicationId
  const half = Number.parseInt(applicationId.charAt(0), 16) % 2
  await jobs.enqueue(cleanupJob, payload, { key: applicationId, queue: `cleanup:${ownerId}:${half}` })
}

interface CleanupParts {
  readonly store: DeploymentStore
  readonly logs: DeploymentLogStore
  readonly registry: ApplicationRegistry
  readonly runtime: ContainerRuntime
  readonly imageService: ImageService
  readonly cachePruner: BuildCachePruner
  readonly prepared: Pick<PreparedImages, 'keep'>
  readonly bus: Bus
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
}

/** What a container of an application is to its deployments. `retired` has served once; `foreign` is not known here. */
type ContainerRole = 'serving' | 'in-progress' | 'foreign' | 'retired' | 'failed'

/**
 * Decided by its verified owner and the record, never by name: a container of an unknown deployment belongs
 * to another installation.
 */
export function roleOf(
  deploymentId: string | undefined,
  status: DeploymentStatus | undefined,
  servingId: string | null
): ContainerRole {
  if (deploymentId === undefined || status === undefined) return 'foreign'
  if (isActive(status)) return 'in-progress'
  if (deploymentId === servingId) return 'serving'
  return status === 'success' ? 'retired' : 'failed'
}

/** Whether a tag ends in the id of the deployment, or in its beginning: the image is one of its build. */
export const isTagOf = (tag: string, deploymentId: string): boolean =>
  deploymentId.startsWith(tag.slice(tag.lastIndexOf(':') + 1))

/** Removes what deploys leave behind: containers that do not serve, images and records beyond the retention. */
export class Cleanup {
  readonly #parts: CleanupParts
  constructor(parts: CleanupParts) {
    this.#parts = parts
  }

  /**
   * The containers of one application with their roles. Deploys go on meanwhile, so the order counts: what serves is
   * read last, for a version that has become a success since would not serve yet; what came later is not in the list.
   */
  async containersByRole(
    applicationId: string
  ): Promise<ReadonlyArray<{ container: ContainerState; role: ContainerRole }>> {
    const { runtime, store, registry } = this.#parts
    const containers = (await runtime.list({ applicationId })).filter(({ status }) => status !== 'removing')
    const states = await store.statesOf(containers.flatMap(({ owner }) => owner.deploymentId ?? []))
    const servingId = (await registry.deployable(applicationId))?.containerDeploymentId ?? null
    return containers.map(container => {
      const id = container.owner.deploymentId
      return { container, role: roleOf(id, id === undefined ? undefined : states.get(id), servingId) }
    })
  }

  /** Containers that served once are stopped with grace, those that never did are removed. */
  async containers(applicationId: string): Promise<void> {
    const { runtime } = this.#parts
    for (const { container, role } of await this.containersByRole(applicationId)) {
      if (role !== 'retired' && role !== 'failed') continue
      if (role === 'retired') await this.#stop(container)
      await runtime.remove(container.id)
    }
  }

  async #stop(container: ContainerState): Promise<void> {
    const { runtime } = this.#parts
    const begunAt = performance.now()
    await runtime.stop(container.id, stopGraceSeconds)
    if (container.status !== 'running') return
    const graceIsOver = performance.now() - begunAt > stopGraceSeconds * 1000 - 500
    const ended = await runtime.inspect(container.id)
    if (ended !== undefined)
      await this.#noteEnd(container, graceIsOver && ended.exitCode === killedCode && !ended.oomKilled)
  }

  /** In the record of the deployment that took over. */
  async #noteEnd({ owner: { deploymentId } }: ContainerState, isKilled: boolean): Promise<void> {
    const { store, logs } = this.#parts
    const successor = deploymentId === undefined ? undefined : await store.successorOf(deploymentId)
    if (successor === undefined) return
    await store.change(successor, { old_version_killed: isKilled })
    if (!isKilled) return
    const buildLog = openBuildLog(successor, { ...this.#parts, store: logs })
    buildLog.endChannel()
    buildLog.line({
      level: 'warning',
      msg: `The old version did not end within ${stopGraceSeconds} s of SIGTERM and was killed: what it was doing is lost. Make it handle SIGTERM; a shell does not hand it on to what it has started, unless that is started by exec.`
    })
    await buildLog.close()
  }

  /** Images that were built or pulled for the application and that no record worth keeping names. */
  async images(applicationId: string, servingId: string | null): Promise<void> {
    const { imageService, prepared, store, log } = this.#parts
    // Listed first: an image that is being built now belongs to a deployment that is active by the next line.
    const images = await imageService.images({ applicationId })
    const kept = await store.keptImages(applicationId, servingId, keptSuccessful)
    const built = images
      .flatMap(({ tags }) => tags)
      .filter(tag => !kept.tags.has(tag) && !kept.active.some(id => isTagOf(tag, id)))
    for (const tag of built)
      await imageService
        .removeImage(tag)
        .catch((error: unknown) =>
          log.debug({ err: error, applicationId, tag }, 'an old image stays for now')
        )
    await prepared.keep(applicationId, kept.needed)
  }

  /** Steps of builds: those that run for no build, and those that have no name, unless a build is about to continue them. */
  async steps(applicationId: string): Promise<void> {
    const { imageService, store, cachePruner, log } = this.#parts
    // Listed first: a build that begins now is not among them.
    const running = await imageService.buildSteps({ applicationId })
    if ((await store.activeOf(applicationId)) !== undefined) return
    // Cut off by a crash of the engine, which forgets its builds and leaves their containers.
    for (const { id } of running) await imageService.removeBuildStep(id)
    await cachePruner
      .prune(applicationId)
      .catch((error: unknown) => log.debug({ err: error, applicationId }, 'steps of old builds stay for now'))
  }

  async records(applicationId: string, servingId: string | null): Promise<void> {
    const { store, logs } = this.#parts
    await store.removeOld(applicationId, servingId, { keep: keptRecords, successful: keptSuccessful })
    await logs.removeOld(applicationId, keptLogs)
  }

  /** All of it, for an application that exists. */
  async application(applicationId: string): Promise<void> {
    const application = await this.#parts.registry.deployable(applicationId)
    if (application === undefined) return
    const servingId = application.containerDeploymentId
    await this.containers(applicationId)
    await this.images(applicationId, servingId)
    await this.steps(applicationId)
    await this.records(applicationId, servingId)
  }
}
