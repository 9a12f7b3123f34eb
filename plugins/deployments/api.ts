import type { ContainerFile, Mounted } from 'busbar/api/containers'
import { event, extensionPoint, type ProblemKind, service, type Tx } from 'busbar/sdk'
import { problems } from './problems.js'

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

/** What a deployment does. */
export type DeploymentKind = 'deploy' | 'build' | 'reload' | 'rebuild' | 'rollback'

/** What other plugins show of a deployment. */
export interface DeploymentSummary {
  readonly id: string
  readonly status: DeploymentStatus
  readonly triggeredBy: string
  /** Null where nothing was built from a commit. */
  readonly commitSha: string | null
  readonly startedAt: Date
}
export interface DeploymentDirectory {
  /** Those of the ids that are known still, in no order. */
  describe(ids: readonly string[]): Promise<readonly DeploymentSummary[]>
  /**
   * Whether a deploy of the application has its image and is making its container, or proving it: parts that were named to it
   * (`ContainerPartsSource`) may get into that container from now on. `deploymentFinished` says when it is over.
   */
  isRollingOut(applicationId: string): Promise<boolean>
}
export const deploymentDirectory = service<DeploymentDirectory>('deployments.directory')

/** A deployment has reached `success` or `failed`. */
export const deploymentFinished = event<{
  readonly deploymentId: string
  readonly applicationId: string
  readonly projectId: string
  readonly status: 'success' | 'failed'
  readonly kind: DeploymentKind
  /** What the application was called then. */
  readonly application: string
  /** Somebody has asked for its end, by cancelling it or removing the application. */
  readonly isCancelled: boolean
  /** Why it failed, remedy included, without secrets; null of a success. */
  readonly error: string | null
}>('deployments.finished')

/**
 * How long a deploy waits for a gate, a source of container parts, a rollout hook or a traffic router; then it fails and
 * names the plugin. A cancel does not wait at all.
 */
export const hookLimitMs = 60_000

/** Says why an application must not be deployed now (a quota is used up); null when it may. Asked before anything is built. */
export interface DeployGate {
  refuses(application: { readonly id: string; readonly projectId: string }): Promise<string | null>
}
export const deployGates = extensionPoint<DeployGate>('deployments.gates')

/**
 * What a plugin adds to the container of an application. A volume is in the old and the new container at once, from the start of
 * the new one until the old one has ended; files are made anew for each container.
 */
export interface ContainerParts {
  readonly volumes: ReadonlyArray<{
    readonly volume: string
    readonly path: string
    readonly readOnly?: boolean
  }>
  readonly files?: readonly ContainerFile[]
  /** What the log and the record of the deploy do not show, line by line: secrets in those files. */
  readonly hidden?: readonly string[]
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

/** What is mounted in the containers of an application, by whoever adds parts to them that users choose the paths of. */
export interface MountPathSource {
  /** As it is in `tx`, with what is not deployed yet. */
  mountsOf(applicationId: string, tx: Tx): Promise<readonly Mounted[]>
}
export const mountPathSources = extensionPoint<MountPathSource>('deployments.mountPathSources')

export interface MountPaths {
  /**
   * For whoever is about to store, in `tx`, that something is mounted in the containers of an application: `mountPathProblems`
   * where nothing may be there, or something is. Until `tx` ends nobody else gets an answer for that application.
   */
  claim(applicationId: string, wanted: Mounted, tx: Tx): Promise<void>
}
export const mountPaths = service<MountPaths>('deployments.mountPaths')

/** What `MountPaths.claim` refuses with. */
export const mountPathProblems: readonly ProblemKind[] = Object.freeze([
  { ...problems.badMountPath, message: 'mount_path cannot be used; the error says why' },
  { ...problems.mountPathTaken, message: 'something is mounted at mount_path, or a file above or below it' }
])

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
 * Called at every boundary between two steps of a deploy, which waits for `hookLimitMs` at most. A `Problem` that it throws before
 * `after record` fails the deploy with its message and rolls it back, anything else does so as an internal error that names the plugin;
 * later either is only logged.
 */
export interface RolloutHook {
  at(boundary: RolloutBoundary, progress: RolloutProgress): void | Promise<void>
}
export const rolloutHooks = extensionPoint<RolloutHook>('deployments.rolloutHooks')

/** Where an application's requests go: one container of one deployment, at an address that the platform can connect to. */
export interface TrafficTarget {
  readonly deploymentId: string
  readonly containerId: string
  readonly host: string
  readonly port: number
}

/** What a switch did to the traffic. */
export interface SwitchProof {
  /** Requests answered between the switch and the end of the drain, by either version. */
  readonly served: number
  /** Requests that got no answer from a container (502 or a cut connection). */
  readonly failed: number
  /** The longest time between two answers while requests were waiting; ms. */
  readonly longestGapMs: number
  /** How long the old version's last requests took to finish; ms. */
  readonly drainMs: number
  /** Requests and sockets still open on the old version when the time was up. */
  readonly cut: number
}

/** A switch that has been made. */
export interface TrafficSwitch {
  /** Resolves when nothing is under way on the container of before, after `timeoutMs` at the latest. Called once at most. */
  drain(timeoutMs: number): Promise<SwitchProof>
}

/**
 * Routes requests of visitors to the container of an application: by its ports, its domains, a proxy. Of several, a deploy prepares
 * all side by side, then switches one after the other in the order of their keys, and drains them together. When a later
 * one or the deploy fails, those whose switch had begun are reverted, the last first.
 *
 * Each call has `hookLimitMs`; what it throws, or a call that takes longer, fails the deploy and names the plugin. A call
 * that timed out may still run when the next one comes: the last one counts. One whose plugin is off is left
 * out, and a call during which the plugin was reloaded is made again to the new version if it failed. So every call may
 * come to another run of the plugin, or after a crash to another process, than the one before, and more than once. Deploys
 * of one application come one after another. A router that was off during a deploy looks up itself what serves (`containerDeploymentId` of
 * `ApplicationRegistry.deployable`).
 */
export interface TrafficRouter {
  /**
   * Prepares for a switch; nothing of what visitors see changes yet. Null, or a sentence without a full
   * stop that says why the application cannot be reached by this router for now. The deploy then goes on with a warning
   * in its log, and `switchTo` is called all the same: its target counts once the application can be reached again.
   */
  prepare(applicationId: string): Promise<string | null>
  /**
   * New requests go to `target` from the moment this resolves; those under way finish where they are. Null where it has
   * no address for the application, and nothing to switch.
   */
  switchTo(applicationId: string, target: TrafficTarget): Promise<TrafficSwitch | null>
  /**
   * Requests go to `target`, the container that served before, whatever a `switchTo` has done or left undone; with null
   * they are refused, as no earlier container runs. Null where nothing has to be drained.
   */
  revert(applicationId: string, target: TrafficTarget | null): Promise<TrafficSwitch | null>
}
export const trafficRouters = extensionPoint<TrafficRouter>('deployments.trafficRouters')
