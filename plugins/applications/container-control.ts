import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import { askContribution, type Bus, type Clock, type Contributions, type ProjectId } from 'busbar/sdk'
import { type ApplicationLifecycle, contributionLimitMs } from './api.js'
import type { ApplicationStore } from './application-store.js'
import type { DeployStore } from './deploy-store.js'
import { type Gates, passGates, refusalOf } from './gates.js'
import { problems } from './problems.js'
import type { StatusBoard } from './status-board.js'
import { lookAgain } from './status-follower.js'

export const stopGraceSeconds = 30

interface ContainerControlParts {
  readonly store: ApplicationStore
  readonly deploys: DeployStore
  readonly board: StatusBoard
  readonly bus: Bus
  readonly clock: Clock
  readonly gates: Gates
  readonly lifecycle: Contributions<ApplicationLifecycle>
  readonly runtime: { get(): ContainerRuntime | undefined }
}

/** Start, stop and restart: they act on the container that exists and read no configuration. */
export class ContainerControl {
  constructor(private readonly parts: ContainerControlParts) {}

  async start(projectId: ProjectId, id: string): Promise<void> {
    const { runtime, container } = await this.#locate(projectId, id)
    if (container.status !== 'running') await runtime.start(container.id)
    await this.#started(id, container.id)
  }

  async stop(projectId: ProjectId, id: string): Promise<void> {
    const { runtime, container } = await this.#locate(projectId, id)
    await this.#stop(id, container.id, runtime)
  }

  async restart(projectId: ProjectId, id: string): Promise<void> {
    const { runtime, container } = await this.#locate(projectId, id)
    await this.#stop(id, container.id, runtime)
    await runtime.start(container.id)
    await this.#started(id, container.id)
  }

  /** See `ApplicationControl`; this and the next two. */
  async refusal(id: string, besides: string): Promise<string | null> {
    return await refusalOf(this.parts.gates, id, besides)
  }

  async stopServing(id: string): Promise<boolean> {
    const found = await this.#serving(id)
    if (found?.container.status !== 'running') return false
    await this.#stop(id, found.container.id, found.runtime)
    return true
  }

  async startServing(id: string): Promise<void> {
    const found = await this.#serving(id)
    if (found === undefined || found.container.status === 'running') return
    await found.runtime.start(found.container.id)
    await this.#started(id, found.container.id)
  }

  async #serving(id: string): Promise<{ runtime: ContainerRuntime; container: ContainerState } | undefined> {
    const { deploys, runtime: engine } = this.parts
    const row = await deploys.followed(id)
    if (row === undefined || row.container_deployment_id === null) return undefined
    const runtime = engine.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    const [container] = await runtime.list({
      applicationId: id,
      deploymentId: row.container_deployment_id
    })
    return container === undefined ? undefined : { runtime, container }
  }

  async #locate(
    projectId: ProjectId,
    id: string
  ): Promise<{ runtime: ContainerRuntime; container: ContainerState }> {
    const { store, gates, runtime: engine } = this.parts
    const application = await store.record(projectId, id)
    if (application === undefined) throw problems.notFound({ applicationId: id })
    const runtime = engine.get()
    if (runtime === undefined) throw problems.containersOff({ plugin: 'containers' })
    await passGates(gates, id)
    const containers = await runtime.list({ applicationId: id })
    // The record decides; the name only speaks where there is none yet.
    const current = application.container_deployment_id
    const container =
      containers.find(({ owner }) => current !== null && owner.deploymentId === current) ??
      containers.find(({ name }) => name === application.slug)
    if (container === undefined) throw problems.noContainer({ slug: application.slug })
    return { runtime, container }
  }

  async #stop(id: string, containerId: string, runtime: ContainerRuntime): Promise<void> {
    const { deploys, clock } = this.parts
    // Before it ends: how it does may look like a crash.
    await deploys.noteStopAsked(id, clock.now())
    await runtime.stop(containerId, stopGraceSeconds)
    await this.#stopped(id)
  }

  async #started(id: string, containerId: string): Promise<void> {
    const { lifecycle, bus } = this.parts
    for (const { value, plugin } of lifecycle.entries())
      await askContribution(() => value.started(id, containerId), {
        ms: contributionLimitMs,
        what: `the plugin "${plugin}", told of a start,`
      })
    await this.#set(id, 'running')
    // It may have ended again before the row said that it runs.
    await bus.signal(lookAgain, id)
  }

  async #stopped(id: string): Promise<void> {
    for (const { value, plugin } of this.parts.lifecycle.entries())
      await askContribution(() => value.stopped(id), {
        ms: contributionLimitMs,
        what: `the plugin "${plugin}", told of a stop,`
      })
    await this.#set(id, 'stopped')
  }

  async #set(id: string, status: 'running' | 'stopped'): Promise<void> {
    const { board, deploys, clock } = this.parts
    await board.set(id, status)
    await deploys.markActive(id, clock.now())
  }
}
