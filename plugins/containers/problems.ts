import type { ProblemKind } from 'busbar/sdk'

/** What everything that asks the engine may be refused with, for routes that declare it. */
export const engineProblems: readonly ProblemKind[] = Object.freeze([
  {
    status: 503,
    code: 'E_ENGINE_UNREACHABLE',
    message: 'the container engine cannot be reached; the error says why, and what helps'
  },
  {
    status: 502,
    code: 'E_ENGINE_REFUSED',
    message: 'the container engine refused, in the words of the error'
  },
  { status: 507, code: 'E_ENGINE_DISK_FULL', message: 'the disk of the container engine is full' }
])

/** The same for what is done with a container that exists. */
export const containerProblems: readonly ProblemKind[] = Object.freeze([
  ...engineProblems,
  { status: 404, code: 'E_CONTAINER_MISSING', message: 'the container is gone' },
  { status: 409, code: 'E_CONTAINER_FOREIGN', message: 'the container is not of this platform' },
  { status: 409, code: 'E_CONTAINER_NOT_RUNNING', message: 'the container does not run' }
])

/** The same for what opens a terminal. */
export const terminalProblems: readonly ProblemKind[] = Object.freeze([
  ...containerProblems,
  {
    status: 502,
    code: 'E_CONTAINER_PROGRAM',
    message: 'the container has no such program, or no shell; the error says why'
  }
])
