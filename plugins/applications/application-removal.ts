import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import {
  type Clock,
  type Database,
  type Events,
  isProblem,
  type ProjectId,
  type Resources,
  type TableRow,
  type Tx
} from 'busbar/sdk'
import { applicationDeleted, type applicationTable } from './api.js'
import { problems } from './problems.js'

/** What its removal goes by; without a deployment whose container runs there are no containers and images. */
export type RemovedApplication = TableRow<
  typeof applicationTable,
  'id' | 'project_id' | 'container_deployment_id'
>

interface ApplicationRemovalParts {
  readonly db: Database
  readonly resources: Resources
  readonly events: Events
  readonly clock: Clock
  readonly runtime: { get(): ContainerRuntime | undefined }
  readonly imageService: { get(): ImageService | undefined }
}

const letGoMs = 15_000
const lookAgainMs = 100

/** What this plugin does itself when an application is removed; the rest is the kernel's, see `resources.ts`. */
export class ApplicationRemoval {
  constructor(private readonly parts: ApplicationRemovalParts) {}

  /** Invisible from now on, with its previews; the kernel takes it apart. */
  async delete(project: ProjectId, applicationId: string): Promise<{ status: string }> {
    const { db, resources } = this.parts
    await db.transaction(async tx => {
      if (!(await resources.remove({ kind: 'application', id: applicationId, project }, tx)))
        throw problems.notFound({ applicationId })
    })
    return { status: 'deleted' }
  }

  async recordDeleted({ id, project_id: projectId }: RemovedApplication, tx: Tx): Promise<void> {
    await this.parts.events.emit(applicationDeleted, { applicationId: id, projectId }, tx)
  }

  /** The last step before the row goes. */
  async removeContainers(
    { id: applicationId, container_deployment_id: deployed }: RemovedApplication,
    signal: AbortSignal
  ): Promise<void> {
    const runtime = this.parts.runtime.get()
    const imageService = this.parts.imageService.get()
    // Without the engine nothing can be left behind by an application that never ran.
    if ((runtime === undefined || imageService === undefined) && deployed === null) return
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    if (imageService === undefined) throw problems.imagesOff({ plugin: 'images' })
    for (const container of await runtime.list({ applicationId })) await runtime.remove(container.id)
    for (const { id } of await imageService.buildSteps({ applicationId }))
      await imageService.removeBuildStep(id)
    for (const image of await imageService.images({ applicationId })) {
      for (const reference of image.tags.length > 0 ? image.tags : [image.id])
        await this.#removeImage(imageService, reference, signal)
    }
  }

  /** The engine takes a build that was cancelled apart a moment later; until then its steps are in use. */
  async #removeImage(imageService: ImageService, reference: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.parts
    for (const end = clock.elapsed() + letGoMs; ; ) {
      try {
        return await imageService.removeImage(reference)
      } catch (error) {
        if (isProblem(error) && error.status === 404) return
        if (!isProblem(error) || error.code !== 'E_IMAGE_IN_USE' || clock.elapsed() >= end) throw error
      }
      await clock.sleep(lookAgainMs, signal)
    }
  }
}
