import type { ContainerState, Owner } from 'busbar/api/containers'
import { cutText } from 'busbar/sdk'
import type Docker from 'dockerode'

const statuses: readonly ContainerState['status'][] = [
  'created',
  'running',
  'paused',
  'restarting',
  'removing',
  'exited',
  'dead'
]
const healths: readonly ContainerState['health'][] = ['healthy', 'unhealthy', 'starting']

/** A check may print anything; this much of it is evidence. */
const healthOutputLength = 4096

/** What the platform wants to know of a container that is verified to be its own. */
export function containerState(seen: Docker.ContainerInspectInfo, owner: Owner): ContainerState {
  const { State: state, Config: config } = seen
  const lastCheck = state.Health?.Log?.at(-1)
  return {
    id: seen.Id,
    name: seen.Name.replace(/^\//, ''),
    image: config.Image,
    owner,
    status: statuses.find(status => status === state.Status) ?? 'dead',
    exitCode: state.ExitCode,
    oomKilled: state.OOMKilled,
    startedAt: state.StartedAt,
    health: healths.find(health => health === state.Health?.Status) ?? null,
    healthOutput: lastCheck === undefined ? null : cutText(lastCheck.Output.trim(), healthOutputLength),
    error: state.Error
  }
}
