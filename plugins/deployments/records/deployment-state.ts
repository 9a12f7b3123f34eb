import type { DeploymentStatus } from '../api.js'

/** What can happen to a deployment. */
export type DeploymentProgress = 'buildBegan' | 'rolloutBegan' | 'succeeded' | 'failed'

const moves: Readonly<Record<DeploymentStatus, Partial<Record<DeploymentProgress, DeploymentStatus>>>> =
  Object.freeze({
    pending: { buildBegan: 'building', failed: 'failed' },
    building: { rolloutBegan: 'deploying', failed: 'failed' },
    deploying: { succeeded: 'success', failed: 'failed' },
    success: {},
    failed: {}
  })

/** The state after `progress`; undefined where there is no such move: a final state never moves. */
export const nextDeploymentState = (
  state: DeploymentStatus,
  progress: DeploymentProgress
): DeploymentStatus | undefined => moves[state][progress]

export const deploymentStatuses = Object.keys(moves) as readonly DeploymentStatus[]

/** The states that `progress` leads out of. */
export const statesBefore = (progress: DeploymentProgress): readonly DeploymentStatus[] =>
  deploymentStatuses.filter(state => moves[state][progress] !== undefined)

/** A deployment that still moves; an application has one of these at most. */
export const isActive = (state: DeploymentStatus): boolean => Object.keys(moves[state]).length > 0
export const activeStatuses: readonly DeploymentStatus[] = deploymentStatuses.filter(isActive)

export const hasBuildEnded = (state: DeploymentStatus): boolean => state !== 'pending' && state !== 'building'

/** The end of the build is the moment when `building` (or `pending`) is left: there is one in every deployment. */
export const endsBuild = (from: DeploymentStatus, to: DeploymentStatus): boolean =>
  !hasBuildEnded(from) && (to === 'deploying' || to === 'failed')
