import { containerRuntime, engineInventory } from 'busbar/api/containers'
import { imageService } from 'busbar/api/images'
import { platformParts } from 'busbar/api/platform'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import {
  bounded,
  type Contributor,
  configChecks,
  healthChecks,
  kernel,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { DockerRuntime } from './docker-runtime.js'
import { followCrashes } from './engine-crash.js'
import { awayWarning, engineWarnings } from './engine-warnings.js'
import { HeartbeatFile } from './heartbeat-file.js'
import { usualBuildHosts } from './host/build-hosts.js'
import type { LimitState } from './host/host-limits.js'
import { keepLimits } from './host/keep-limits.js'
import { localTools } from './host/local-tools.js'
import { readInstanceId } from './instance-id.js'
import { NetworkRemoval } from './network-removal.js'
import { offeredImages, offeredInventory, offeredRuntime } from './offered-services.js'
import type { Settings } from './settings.js'

export const needs = {
  clock: kernel.clock,
  exec: kernel.exec,
  instance: kernel.instance,
  secrets: kernel.secrets,
  projects: projectDirectory
}

/** The running plugin. Each of the functions goes on until its signal aborts. */
export interface RuntimeDocker {
  readonly runtime: DockerRuntime
  readonly networks: NetworkRemoval
  /** Starts again what went down with the engine. */
  readonly recover: (signal: AbortSignal) => Promise<void>
  /** Keeps up the rules of what containers reach of their machine. */
  readonly limit: (signal: AbortSignal) => Promise<void>
}

export async function startRuntimeDocker({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Promise<RuntimeDocker> {
  const { clock, instance } = use
  const runtime = new DockerRuntime({
    instanceId: await readInstanceId(config.instance_id, instance),
    signatures: use.secrets,
    clock,
    log,
    settings: {
      ...config,
      build_private_hosts: config.build_private_hosts ?? usualBuildHosts(instance.loopbackOnly)
    },
    localTools: localTools(use.exec)
  })
  // The last thing: callbacks run in reverse.
  onStop(() => runtime.close())
  onStop(async () => {
    await runtime.disk.close()
  })
  onStop(async () => {
    // An engine that hangs holds nobody's stop.
    await bounded(() => runtime.limits.stop(), { ms: 8_000, what: 'the limits of the machine' }).catch(
      (error: unknown) => {
        log.warn({ err: error }, 'limits of the machine are still being set')
      }
    )
  })
  const heartbeat = new HeartbeatFile(await instance.directory(), clock, log)
  return {
    runtime,
    networks: new NetworkRemoval(runtime, use.projects, log),
    recover: async signal => {
      await followCrashes({ runtime, heartbeat, clock, log }, signal)
    },
    limit: async signal => {
      await keepLimits(runtime, clock, log, signal)
    }
  }
}

export function runtimeDockerServices(provide: ServiceBinder, { runtime }: RuntimeDocker): void {
  provide(containerRuntime, offeredRuntime(runtime))
  provide(engineInventory, offeredInventory(runtime.inventory))
  provide(imageService, offeredImages(runtime))
}

/** What of the limits of containers does not hold; by the state of them. */
const shortcomings: Partial<Record<LimitState['kind'], string>> = {
  failed: ', which reach every open port of their machine: the log says why',
  unguarded: ', which may pass for each other outside of their networks: the log says why'
}

const learning =
  ', of which steps of builds can fill the tables of neighbours of their machine: the log says why'
const unbounded = ', which may use all memory and processes of their machine: the log says why'

export function runtimeDockerContributions(
  contribute: Contributor,
  { runtime, networks }: RuntimeDocker
): void {
  contribute(healthChecks, 'docker', {
    check: async () => {
      const { containers } = await runtime.info()
      return `ok (${containers} containers${shortcomings[runtime.hostLimits.kind] ?? ''}${runtime.limits.groups.state.kind === 'failed' ? unbounded : ''}${runtime.limits.bridges.state.kind === 'failed' ? learning : ''})`
    }
  })
  contribute(platformParts, 'engine', {
    parts: () => [
      {
        id: 'docker',
        name: 'Docker Engine',
        description: 'Runs containers and keeps images',
        fault: async () => {
          await runtime.info()
          return null
        }
      }
    ]
  })
  contribute(configChecks, 'runtime-docker', {
    warnings: async () => {
      const { packets, groups, bridges } = runtime.limits
      const states = { packets: packets.state.kind, groups: groups.state.kind, bridges: bridges.state.kind }
      return await runtime.info().then(
        info => engineWarnings(info, states),
        (error: unknown) => [awayWarning(error)]
      )
    }
  })
  contribute(projectTeardown, 'runtime-docker', {
    teardown: async projectId => {
      await networks.teardown(projectId)
    }
  })
}
