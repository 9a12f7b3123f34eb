import type { ApplicationRegistry } from 'busbar/api/applications'
import type { ContainerEvent, ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import type { Log, OptionalHandle } from 'busbar/sdk'
import type { AddressService } from './address-service.js'
import { type AddressStore, targetOf } from './address-store.js'

const watched = new Set(['start', 'restart', 'stop', 'die', 'oom', 'destroy'])

/** As a deploy decides when neither the application nor its image names a port. */
const defaultPort = 8080

/** Containers that are restarted may come back at another address: their targets follow. */
export function createContainerWatch(parts: {
  readonly store: AddressStore
  readonly service: AddressService
  readonly registry: ApplicationRegistry
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly imageService: OptionalHandle<ImageService>
  readonly log: Log
}) {
  const { store, service, registry, runtime, imageService, log } = parts

  /** Renews the address of one container, if it is the one that requests go to; whether that does not run any more. */
  async function look(applicationId: string, containerId: string): Promise<boolean> {
    const target = await store.find(applicationId).then(row => (row === undefined ? null : targetOf(row)))
    const engine = runtime.get()
    if (target === null || engine === undefined || target.containerId !== containerId) return false
    const isRunning = (await engine.inspect(containerId))?.status === 'running'
    const at = isRunning ? await engine.dial(containerId, target.port) : null
    await service.renew(applicationId, containerId, at)
    return at === null
  }

  /** Gives an address to what was deployed while this plugin was off. A target that runs is never replaced. */
  async function adopt(container: ContainerState): Promise<void> {
    const { applicationId, deploymentId } = container.owner
    const engine = runtime.get()
    if (
      engine === undefined ||
      applicationId === undefined ||
      deploymentId === undefined ||
      container.status !== 'running'
    )
      return
    const known = await store.find(applicationId).then(row => (row === undefined ? null : targetOf(row)))
    if (known !== null && (await engine.inspect(known.containerId))?.status === 'running') return
    const application = await registry.deployable(applicationId)
    if (application?.containerDeploymentId !== deploymentId) return
    const images = imageService.get()
    if (application.containerPort === null && images === undefined) return
    const port =
      application.containerPort ?? (await images?.image(container.image))?.exposedPorts[0] ?? defaultPort
    const at = await engine.dial(container.id, port)
    await service.open(applicationId)
    await service.replace(applicationId, known, { deploymentId, containerId: container.id, ...at })
  }

  const attempt = async (applicationId: string, work: () => Promise<void>): Promise<void> => {
    await work().catch((error: unknown) =>
      log.warn({ err: error, applicationId }, 'could not renew a direct address')
    )
  }

  async function handleEvent(event: ContainerEvent): Promise<void> {
    if (event.kind === 'resync') {
      for (const { application_id: applicationId, container_id: containerId } of await store.all()) {
        if (containerId !== null)
          await attempt(applicationId, async () => {
            await look(applicationId, containerId)
          })
      }
      for (const container of (await runtime.get()?.list({})) ?? [])
        await attempt(container.owner.applicationId ?? '', async () => await adopt(container))
    } else if (watched.has(event.action) && event.owner.applicationId !== undefined) {
      const { applicationId } = event.owner
      await attempt(applicationId, async () => {
        // What serves may have been deployed while this plugin was off, and before the old version had ended.
        if (!(await look(applicationId, event.containerId))) return
        for (const container of (await runtime.get()?.list({ applicationId })) ?? []) await adopt(container)
      })
    }
  }

  return {
    started: async (applicationId: string, containerId: string): Promise<void> => {
      await look(applicationId, containerId)
    },

    stopped: (applicationId: string): Promise<void> => service.retarget(applicationId, null),

    /** Follows the engine's events until `signal` aborts. */
    async run(signal: AbortSignal): Promise<void> {
      await runtime.whileAvailable(signal, async (engine, following) => {
        for await (const event of engine.events(following)) await handleEvent(event)
      })
    }
  }
}
export type ContainerWatch = ReturnType<typeof createContainerWatch>
