import type { PreparedImages } from 'busbar/api/builds'
import type { ContainerRuntime } from 'busbar/api/containers'
import type { ImageService } from 'busbar/api/images'
import type { Bus, Clock, Log } from 'busbar/sdk'
import type { FollowUpStore } from './queue/follow-up-store.js'
import type { DeploymentRecords } from './records/deployment-records.js'
import type { DeploymentStore } from './records/deployment-store.js'
import { cancelTopic } from './rollout/cancel-watch.js'

const endWithinMs = 20_000
const lookEveryMs = 200

/** Removes what deploys have made of an application: its containers, its images, its records. */
export class DeploymentTeardown {
  readonly #parts: TeardownParts
  constructor(parts: TeardownParts) {
    this.#parts = parts
  }

  async application(applicationId: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { store, runtime, imageService, prepared, followUps, log } = this.#parts
    await followUps.drop(applicationId)
    await this.#endActive(applicationId, signal)
    for (const { id } of await runtime.list({ applicationId })) {
      await runtime.stop(id, 5)
      await runtime.remove(id)
    }
    for (const { tags } of await imageService.images({ applicationId })) {
      for (const tag of tags) {
        await imageService
          .removeImage(tag)
          .catch((error: unknown) =>
            log.warn(
              { err: error, applicationId, tag },
              'an image of a deleted application could not be removed'
            )
          )
      }
    }
    await prepared.keep(applicationId, [])
    await store.removeAll(applicationId)
  }

  async #endActive(applicationId: string, signal: AbortSignal): Promise<void> {
    const { store, records, bus, clock } = this.#parts
    for (let waited = 0; ; waited += lookEveryMs) {
      const active = await store.activeOf(applicationId)
      if (active === undefined || (await records.cancelPending(active))) return
      if (waited >= endWithinMs) throw new Error(`deployment ${active} has not ended yet`)
      if (waited === 0) {
        const owner = await store.ownerOf(active)
        if (owner !== undefined) await store.requestCancel(owner.project_id, active, [], clock.now())
        await bus.signal(cancelTopic, active)
      }
      await clock.sleep(lookEveryMs, signal)
    }
  }
}

interface TeardownParts {
  readonly store: DeploymentStore
  readonly prepared: Pick<PreparedImages, 'keep'>
  readonly records: DeploymentRecords
  readonly followUps: FollowUpStore
  readonly runtime: ContainerRuntime
  readonly imageService: ImageService
  readonly bus: Bus
  readonly clock: Clock
  readonly log: Log
}
