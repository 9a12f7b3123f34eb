import type { ProjectDirectory } from 'busbar/api/projects'
import { isProblem, type Log } from 'busbar/sdk'
import type { DockerRuntime } from './docker-runtime.js'

/** Takes away the networks of projects that are gone. */
export class NetworkRemoval {
  constructor(
    private readonly runtime: DockerRuntime,
    private readonly projects: ProjectDirectory,
    private readonly log: Log
  ) {}

  /**
   * Removes a deleted project's network, as the last step of its teardown. A project can be deleted while
   * the engine is away: what is then left is removed when the engine is back.
   */
  async teardown(projectId: string): Promise<void> {
    try {
      await this.runtime.removeNetworks(projectId)
    } catch (error) {
      if (!isProblem(error) || error.code !== 'E_ENGINE_UNREACHABLE') throw error
      this.log.warn(
        { projectId },
        'the engine is away: a network of the deleted project, if there is one, is removed when it is back'
      )
    }
  }

  /** Each time the engine answers (again), removes the networks of projects that are gone. */
  async sweep(signal: AbortSignal): Promise<void> {
    for await (const event of this.runtime.events(signal)) {
      if (event.kind !== 'resync') continue
      for (const projectId of await this.runtime.networkOwners()) {
        if ((await this.projects.find(projectId)) !== undefined) continue
        await this.runtime.removeNetworks(projectId).catch((error: unknown) => {
          this.log.warn({ err: error, projectId }, 'the network of a deleted project is still there')
        })
      }
    }
  }
}
