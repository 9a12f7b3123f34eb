import type { ContainerRuntime } from 'busbar/api/containers'
import type { Log, OptionalHandle } from 'busbar/sdk'
import type { OwnHosts } from './own-hosts.js'
import type { Routing } from './routing.js'

const watched = new Set(['start', 'restart', 'stop', 'die', 'oom', 'destroy'])

interface ContainerWatchParts {
  readonly routing: Routing
  readonly ownHosts: OwnHosts
  readonly runtime: OptionalHandle<ContainerRuntime>
  readonly log: Log
}

/** Containers that are restarted may come back at another address: requests follow. */
export class ContainerWatch {
  constructor(private readonly parts: ContainerWatchParts) {}

  async started(applicationId: string, containerId: string): Promise<void> {
    await this.parts.routing.renew(applicationId, containerId)
  }

  async stopped(applicationId: string): Promise<void> {
    await this.parts.routing.retarget(applicationId, null)
  }

  /** Follows the engine's events until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { runtime, routing } = this.parts
    await runtime.whileAvailable(signal, async (engine, following) => {
      for await (const event of engine.events(following)) {
        if (event.kind === 'resync') await this.#adoptAll(engine)
        else if (watched.has(event.action) && event.owner.applicationId !== undefined) {
          const { applicationId } = event.owner
          await this.#attempt(
            applicationId,
            async () => await routing.renew(applicationId, event.containerId)
          )
        }
      }
    })
  }

  async #adoptAll(engine: ContainerRuntime): Promise<void> {
    const { routing, ownHosts } = this.parts
    for (const { id, owner } of await engine.list({})) {
      const { applicationId } = owner
      if (applicationId === undefined) continue
      await this.#attempt(applicationId, async () => {
        await routing.renew(applicationId, id)
        await routing.adopt(applicationId)
        // It may have been deployed before this plugin was there.
        await ownHosts.give(applicationId)
      })
    }
  }

  async #attempt(applicationId: string, work: () => Promise<void>): Promise<void> {
    await work().catch((error: unknown) =>
      this.parts.log.warn({ err: error, applicationId }, 'could not follow the container of an application')
    )
  }
}
