import type Docker from 'dockerode'
import type { ContainerState } from './api.js'
import { instanceLabel, ownerOf } from './labels.js'

const statuses: readonly ContainerState['status'][] = ['created', 'running', 'paused', 'restarting', 'removing', 'exited', 'dead']
const healths: readonly ContainerState['health'][] = ['healthy', 'unhealthy', 'starting']

/** A check may print anything; this much of it is evidence. */
const healthOutputLength = 4096

/** What the platform wants to know of a container; undefined when another platform, or nobody, owns it. */
export function containerState (seen: Docker.ContainerInspectInfo, instanceId: string): ContainerState | undefined {
  const { State: state, Config: config } = seen
  if (config.Labels[instanceLabel] !== instanceId) return undefined
  const lastCheck = state.Health?.Log?.at(-1)
  return {
    id: seen.Id,
    name: seen.Name.replace(/^\//, ''),
    image: config.Image,
    owner: ownerOf(config.Labels),
    status: statuses.find(status => status === state.Status) ?? 'dead',
    exitCode: state.ExitCode,
    oomKilled: state.OOMKilled,
    startedAt: state.StartedAt,
    health: healths.find(health => health === state.Health?.Status) ?? null,
    healthOutput: lastCheck === undefined ? null : lastCheck.Output.trim().slice(0, healthOutputLength),
    error: state.Error
  }
}
