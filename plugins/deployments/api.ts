import { event, extensionPoint, service } from 'busbar/sdk'

export type DeploymentStatus = 'pending' | 'building' | 'deploying' | 'success' | 'failed'
export type Trigger = 'push' | 'manual' | 'api' | 'rollback' | 'reload' | 'rebuild' | 'template' | 'hook'

export interface DeploymentQueue {
  /** Starts a deploy and answers its id at once; a `Problem` 409 E_DEPLOYMENT_ACTIVE while one is active. */
  deploy(applicationId: string, trigger: Trigger): Promise<{ readonly deploymentId: string }>
  /**
   * The same, but while one is active exactly one follow-up waits for it, whatever number is asked for:
   * null then. It deploys what is newest when it begins. For pushes.
   */
  deploySoon(applicationId: string, trigger: Trigger): Promise<{ readonly deploymentId: string } | null>
}
export const deploymentQueue = service<DeploymentQueue>('deployments.queue')

/** A deployment has reached `success` or `failed`. */
export const deploymentFinished = event<{
  readonly deploymentId: string
  readonly applicationId: string
  readonly projectId: string
  readonly status: 'success' | 'failed'
}>('deployments.finished')

/** How long a deploy waits for a gate, a source of container parts or a rollout hook; then it fails and names the plugin. A cancel does not wait at all. */
export const hookLimitMs = 60_000

/** Says why an application must not be deployed now (a quota is used up); null when it may. Asked before anything is built. */
export interface DeployGate {
  refuses(application: { readonly id: string; readonly projectId: string }): Promise<string | null>
}
export const deployGates = extensionPoint<DeployGate>('deployments.gates')

/** What a plugin adds to the container of an application: volumes, and files that are mounted as such. */
export interface ContainerParts {
  readonly volumes: ReadonlyArray<{
    readonly volume: string
    readonly path: string
    readonly readOnly?: boolean
  }>
}
export interface ContainerPartsSource {
  /** Asked for each new container, when its image is there. What it needs on the engine is made before it answers. */
  partsFor(application: {
    readonly id: string
    readonly projectId: string
    readonly slug: string
  }): Promise<ContainerParts>
}
export const containerParts = extensionPoint<ContainerPartsSource>('deployments.containerParts')

export const rolloutSteps = [
  'load',
  'prepare-image',
  'network',
  'create',
  'start',
  'prove-healthy',
  'switch',
  'record',
  'drain',
  'clean-up'
] as const
export type RolloutStepName = (typeof rolloutSteps)[number]
export type RolloutBoundary = `before ${RolloutStepName}` | `after ${RolloutStepName}`

/** A deploy under way, as far as it has come: the container is there after `create`. */
export interface RolloutProgress {
  readonly deploymentId: string
  readonly applicationId: string
  readonly projectId: string
  readonly containerId: string | undefined
}

/**
 * Called at every boundary between two steps of a deploy, which waits for `hookLimitMs` at most. What it throws before `after
 * record` fails the deploy with these words and takes everything back; later it is only logged.
 */
export interface RolloutHook {
  at(boundary: RolloutBoundary, progress: RolloutProgress): void | Promise<void>
}
export const rolloutHooks = extensionPoint<RolloutHook>('deployments.rolloutHooks')
