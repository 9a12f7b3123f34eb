import type { ApplicationRegistry, DeployableApplication } from 'busbar/api/applications'
import type { ImagePreparation, PreparedImage, PreparedImages } from 'busbar/api/builds'
import type { ContainerRuntime, ContainerState } from 'busbar/api/containers'
import type { EnvironmentVariables, Variable } from 'busbar/api/environment'
import type { ImageService } from 'busbar/api/images'
import type { Clock, Contributions, Database, Jobs, Log, SecretScope, Secrets } from 'busbar/sdk'
import type { ContainerPartsSource, DeployGate, RolloutHook, RolloutStepName } from '../api.js'
import type { Cleanup } from '../cleanup.js'
import type { BuildQueue } from '../queue/build-queue.js'
import type { OwnerTurns } from '../queue/owner-turns.js'
import type { BuildLog } from '../records/build-log.js'
import type { BuildSteps } from '../records/build-steps.js'
import type { DeploymentRecords } from '../records/deployment-records.js'
import type { DeploymentRow, DeploymentStore } from '../records/deployment-store.js'
import type { Drain, FoundRouter, Traffic } from '../traffic/traffic.js'
import type { ExitWatch } from './exit-watch.js'

/** What a rollout works with. */
export interface RolloutTools {
  readonly db: Database
  readonly store: DeploymentStore
  readonly records: DeploymentRecords
  readonly registry: ApplicationRegistry
  readonly variables: EnvironmentVariables
  readonly images: ImagePreparation
  readonly prepared: PreparedImages
  readonly buildQueue: Pick<BuildQueue, 'enter'>
  readonly turns: Pick<OwnerTurns, 'take'>
  readonly runtime: ContainerRuntime
  readonly imageService: ImageService
  readonly traffic: Traffic
  readonly gates: Contributions<DeployGate>
  readonly parts: Contributions<ContainerPartsSource>
  readonly hooks: Contributions<RolloutHook>
  readonly cleanup: Cleanup
  readonly jobs: Jobs
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
}

/** Undoes what a step has done, in whole or in part; idempotent. */
interface Undo {
  readonly step: RolloutStepName
  /** `signal`: that of the job, which may have been what failed the deployment. */
  run(signal: AbortSignal): Promise<void>
}

/** One rollout under way. The types below add what its steps have found out and made so far. */
export interface Rollout {
  readonly deployment: DeploymentRow
  readonly buildLog: BuildLog
  readonly buildSteps: BuildSteps
  /** What its texts do not show. */
  readonly secrets: SecretScope
  readonly signal: AbortSignal
  /** Called when it ends, whatever its result. */
  readonly releases: Array<() => void>
  /** Run in reverse when it fails. A step adds its own before it does anything. */
  readonly undos: Undo[]
}

export interface Loaded extends Rollout {
  readonly application: DeployableApplication
  /** When the settings were read: changes made after that are not part of it. */
  readonly loadedAt: Date
  readonly variables: readonly Variable[]
}

export interface WithImage extends Loaded {
  readonly image: PreparedImage
}

export interface WithNetwork extends WithImage {
  readonly network: string
}

export interface Created extends WithNetwork {
  readonly containerId: string
  readonly port: number
  /** False when neither the application nor its image names a port. */
  readonly isPortKnown: boolean
}

export interface Started extends Created {
  readonly exitWatch: ExitWatch
}

/** Its container was proven healthy, here or by a process that has crashed since. */
export type Proven = Pick<Created, keyof Rollout | 'application' | 'loadedAt' | 'containerId' | 'port'>

export interface Switched extends Proven {
  /** The container that has served until now. */
  readonly old: ContainerState | undefined
  /** Those that were there when the switch began. */
  readonly routers: readonly FoundRouter[]
  readonly drain: Drain
}

/** From here on the new version serves: a cancel is refused, and after a crash the deploy is finished. */
export const uncancellable: readonly RolloutStepName[] = ['switch', 'record', 'drain', 'clean-up']
