import type { ContainerEvent, ContainerState } from 'busbar/api/containers'
import type { DatabaseStatus } from '../api.js'

interface Seen {
  readonly status: DatabaseStatus
  readonly reason: string | null
}
type Event = Pick<Extract<ContainerEvent, { kind: 'container' }>, 'action' | 'exitCode'>

const ended = (exitCode: number | null): Seen =>
  exitCode === null || exitCode === 0
    ? { status: 'stopped', reason: null }
    : { status: 'failed', reason: `its server ended with exit code ${exitCode}: its log says more` }

/** By SIGKILL, as the kernel ends what it takes memory from. */
const killedCode = 128 + 9
const noMemory = { status: 'failed', reason: 'its server ended for want of memory' } as const

/** The status after an event of its container; `isAsked`: somebody has asked for its end a moment ago. */
export function statusAfter(current: DatabaseStatus, { action, exitCode }: Event, isAsked: boolean): Seen {
  switch (action) {
    case 'start':
    case 'restart':
      return { status: 'running', reason: null }
    case 'stop':
      // Of one that the platform has given up, the reason stays.
      return { status: current === 'failed' ? current : 'stopped', reason: null }
    case 'die':
      if (current === 'stopped' || current === 'failed') return { status: current, reason: null }
      return isAsked ? { status: 'stopped', reason: null } : ended(exitCode)
    case 'oom':
      // Of a program in it: the server may live on, and where it does not, an event follows.
      return { status: current, reason: null }
    case 'destroy':
      return current === 'running'
        ? { status: 'failed', reason: 'its container was removed' }
        : { status: current, reason: null }
    case 'healthy':
    case 'unhealthy':
      return { status: current, reason: null }
  }
}

/** The status that fits what the engine holds; undefined: the container is gone. */
export function statusOf(
  current: DatabaseStatus,
  container: Pick<ContainerState, 'status' | 'exitCode' | 'oomKilled'> | undefined
): Seen {
  switch (container?.status) {
    case undefined:
      return statusAfter(current, { action: 'destroy', exitCode: null }, false)
    case 'running':
      return { status: 'running', reason: null }
    case 'exited':
    case 'dead':
      if (current === 'stopped' || current === 'failed') return { status: current, reason: null }
      // The engine says it of all that a program in them was taken from, however they ended later.
      return container?.oomKilled === true && container.exitCode === killedCode
        ? noMemory
        : ended(container?.exitCode ?? null)
    // In transition: an event will follow.
    case 'created':
    case 'paused':
    case 'restarting':
    case 'removing':
      return { status: current, reason: null }
  }
}
