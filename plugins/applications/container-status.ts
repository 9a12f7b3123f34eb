import type { ContainerState } from 'busbar/api/containers'
import type { ApplicationStatus } from './api.js'
import { killedCode } from './memory-ends.js'

/** What an event of the engine says about the one container that counts. */
interface StatusEvent {
  readonly action: 'start' | 'restart' | 'stop' | 'die' | 'oom' | 'healthy' | 'unhealthy' | 'destroy'
  readonly exitCode: number | null
  /** The container has ended because the kernel took it for want of memory. */
  readonly hasLackedMemory: boolean
}

/** The application's status after an event of its current container. */
export function statusAfter(
  current: ApplicationStatus,
  { action, exitCode, hasLackedMemory }: StatusEvent
): ApplicationStatus {
  switch (action) {
    case 'start':
    case 'restart':
    case 'healthy':
      return 'running'
    case 'stop':
      return 'stopped'
    case 'oom':
      // Of a program in it: the others serve on.
      return hasLackedMemory ? 'error' : current
    case 'unhealthy':
      return current === 'running' ? 'unhealthy' : current
    case 'die':
      if (current === 'stopped' || current === 'error') return current
      return hasLackedMemory ? 'error' : statusOfExit(exitCode)
    case 'destroy':
      return current
  }
}

/** The application's status after a check of its container that is not the engine's. */
export const statusAfterCheck = (
  current: ApplicationStatus,
  health: 'healthy' | 'unhealthy'
): ApplicationStatus =>
  health === 'unhealthy' && current === 'running'
    ? 'unhealthy'
    : health === 'healthy' && current === 'unhealthy'
      ? 'running'
      : current

/** 129 to 192 are ends by a signal: the end was wanted. */
const statusOfExit = (code: number | null): ApplicationStatus =>
  code === null || code === 0 || (code >= 129 && code <= 192) ? 'stopped' : 'error'

/** The engine knows nothing of a container without a check of its own: then what another check has found stands. */
const healthOf = (current: ApplicationStatus, health: ContainerState['health']): ApplicationStatus =>
  health === 'unhealthy' || (health === null && current === 'unhealthy') ? 'unhealthy' : 'running'

/** The status that fits what the engine holds; undefined: the container is gone. */
export function statusOf(
  current: ApplicationStatus,
  container: Pick<ContainerState, 'status' | 'exitCode' | 'oomKilled' | 'health'> | undefined
): ApplicationStatus {
  switch (container?.status) {
    case undefined:
      return statusAfter(current, { action: 'die', exitCode: null, hasLackedMemory: false })
    case 'running':
      return healthOf(current, container?.health ?? null)
    case 'exited':
    case 'dead':
      return statusAfter(current, {
        action: 'die',
        exitCode: container?.exitCode ?? null,
        // The engine says it of all that a program in them was taken from, however they ended later.
        hasLackedMemory: container?.oomKilled === true && container.exitCode === killedCode
      })
    // In transition: an event will follow.
    case 'created':
    case 'paused':
    case 'restarting':
    case 'removing':
      return current
  }
}
