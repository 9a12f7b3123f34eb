import type { ApplicationRegistry, DeployableApplication } from 'busbar/api/applications'
import type { ImagePreparation, PreparedImage } from 'busbar/api/builds'
import type { DirectAddresses, SwitchProof } from 'busbar/api/direct'
import type { EnvironmentVariables, Variable } from 'busbar/api/environment'
import type { ContainerRuntime, ContainerState } from 'busbar/api/runtime-docker'
import type { Clock, Contributions, Database, Jobs, Log, SecretScope, Secrets } from 'busbar/sdk'
import type { ContainerPartsSource, DeployGate, RolloutHook, RolloutStepName } from '../api.js'
import type { BuildQueue } from '../queue/build-queue.js'
import type { OwnerTurns } from '../queue/owner-turns.js'
import type { BuildLog } from '../records/build-log.js'
import type { DeploymentRecords } from '../records/deployment-records.js'
import type { DeploymentRow, DeploymentStore } from '../records/deployment-store.js'
import type { Tidying } from '../tidying.js'
import type { ExitWatch } from './exit-watch.js'

/** What a rollout works with. */
export interface RolloutTools {
  readonly db: Database
  readonly store: DeploymentStore
  readonly records: DeploymentRecords
  readonly registry: ApplicationRegistry
  readonly variables: EnvironmentVariables
  readonly images: ImagePreparation
  readonly buildQueue: Pick<BuildQueue, 'enter'>
  readonly turns: Pick<OwnerTurns, 'take'>
  readonly runtime: ContainerRuntime
  readonly direct: { get(): DirectAddresses | undefined }
  readonly gates: Contributions<DeployGate>
  readonly parts: Contributions<ContainerPartsSource>
  readonly hooks: Contributions<RolloutHook>
  readonly tidying: Tidying
  readonly jobs: Jobs
  readonly secrets: Secrets
  readonly clock: Clock
  readonly log: Log
}
/** One rollout under way: what its steps have found out and made so far. */
export interface Rollout {
  readonly deployment: DeploymentRow
  readonly buildLog: BuildLog
  readonly signal: AbortSignal
  /** What its texts do not show. */
  readonly secrets: SecretScope
  /** Everything that must be let go of when it ends, whatever its end. */
  readonly releases: Array<() => void>

  application?: DeployableApplication
  /** When the settings were read: changes made after that are not part of it. */
  loadedAt?: Date
  variables?: readonly Variable[]
  image?: PreparedImage
  network?: string
  containerId?: string
  exitWatch?: ExitWatch
  port?: number
  isPortKnown?: boolean
  /** The container that has served until now. */
  old?: ContainerState
  /** The direct address may go to the new container. */
  isDirectTouched?: boolean
  drain?: (timeoutMs: number) => Promise<SwitchProof>
}

/** From here on the new version serves: a cancel comes too late, and a crash is answered by going on. */
export const uncancellable: readonly RolloutStepName[] = ['switch', 'record', 'drain', 'clean-up']

/** One named step of a rollout. */
export interface RolloutStep {
  readonly name: RolloutStepName
  run(rollout: Rollout): Promise<void>
  /** Takes back what the step has done, in whole or in part; runs again harmlessly. */
  undo?(rollout: Rollout): Promise<void>
}

/** A value that an earlier step has left; its absence is a mistake in the order of the steps. */
export function from<K extends keyof Rollout>(rollout: Rollout, key: K): NonNullable<Rollout[K]> {
  const value = rollout[key]
  if (value === undefined || value === null) throw new Error(`the rollout has no ${key} yet`)
  return value
}
