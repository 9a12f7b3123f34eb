import type { ProjectDirectory, ProjectTeardown } from 'busbar/api/projects'
import { isProblem, type Log } from 'busbar/sdk'
import type { DockerRuntime } from './docker-runtime.js'

/**
 * Removes a deleted project's network, as the last step of its teardown. A project can be deleted while
 * the engine is away: what is then left is removed when the engine is back.
 */
export const networkTeardown = (runtime: DockerRuntime, log: Log): ProjectTeardown => ({
  async teardown (projectId) {
    try {
      await runtime.removeNetwork(projectId)
    } catch (error) {
      if (!isProblem(error) || error.code !== 'E_ENGINE_UNREACHABLE') throw error
      log.warn({ projectId }, 'the engine is away: a network of the deleted project, if there is one, is removed when it is back')
    }
  }
})

/** Each time the engine answers (again), removes the networks of projects that are gone. */
export async function sweepNetworks (runtime: DockerRuntime, projects: ProjectDirectory, log: Log, signal: AbortSignal): Promise<void> {
  for await (const event of runtime.events(signal)) {
    if (event.kind !== 'resync') continue
    for (const projectId of await runtime.networkOwners()) {
      if (await projects.find(projectId) !== undefined) continue
      await runtime.removeNetwork(projectId).catch((error: unknown) => { log.warn({ err: error, projectId }, 'the network of a deleted project is still there') })
    }
  }
}
