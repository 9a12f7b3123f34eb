import {
  applicationDeployHealth,
  applicationGates,
  applicationRegistry,
  applicationTeardown
} from 'busbar/api/applications'
import {
  buildAdmission,
  buildCachePruner,
  cachedImages,
  engineDisk,
  imagePreparation,
  preparedImages
} from 'busbar/api/builds'
import { containerRuntime } from 'busbar/api/containers'
import { environmentVariables } from 'busbar/api/environment'
import { imageService } from 'busbar/api/images'
import { figureSources } from 'busbar/api/metrics'
import { deploymentCounters } from 'busbar/api/platform'
import { type Contributor, kernel, type ServiceBinder, type SseFrame, type StartContext } from 'busbar/sdk'
import {
  containerParts,
  type DeploymentDirectory,
  deployGates,
  deploymentDirectory,
  deploymentQueue,
  mountPathSources,
  mountPaths,
  rolloutHooks,
  trafficRouters
} from './api.js'
import { DeploymentTeardown } from './application-teardown.js'
import { Cleanup } from './cleanup.js'
import { DeploymentService } from './deployment-service.js'
import { DiskGuard } from './disk/disk-guard.js'
import { ImageRecords } from './disk/image-records.js'
import { HealthWatch } from './health/health-watch.js'
import { DeployHookService } from './hooks/deploy-hook-service.js'
import { DeployHookStore } from './hooks/deploy-hook-store.js'
import { MountPathClaims } from './mount-paths.js'
import { BuildQueue } from './queue/build-queue.js'
import { BuildQueueStore } from './queue/build-queue-store.js'
import { FollowUpStore } from './queue/follow-up-store.js'
import { OwnerTurnStore } from './queue/owner-turn-store.js'
import { OwnerTurns } from './queue/owner-turns.js'
import type { BuildLogPlace } from './records/build-log-place.js'
import { BuildLogPoll } from './records/build-log-poll.js'
import { streamBuildLog } from './records/build-log-stream.js'
import { BuildStepStore } from './records/build-step-store.js'
import { DeploymentCountStore } from './records/deployment-count-store.js'
import { DeploymentCounts } from './records/deployment-counts.js'
import { DeploymentLogStore } from './records/deployment-log-store.js'
import { DeploymentRecords } from './records/deployment-records.js'
import { DeploymentStore } from './records/deployment-store.js'
import { DeploymentSummaryStore } from './records/deployment-summary-store.js'
import { DeploymentTallyStore } from './records/deployment-tally-store.js'
import { GlobalDeploymentStore } from './records/global-deployment-store.js'
import { Recovery } from './rollout/recovery.js'
import { RolloutEngine } from './rollout/rollout-engine.js'
import { ServingReconciler } from './rollout/serving-reconciler.js'
import type { Settings } from './settings.js'
import { Traffic } from './traffic/traffic.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  events: kernel.events,
  bus: kernel.bus,
  secrets: kernel.secrets,
  clock: kernel.clock,
  registry: applicationRegistry,
  variables: environmentVariables,
  images: imagePreparation,
  prepared: preparedImages,
  cachePruner: buildCachePruner,
  admission: buildAdmission,
  engineDisk,
  runtime: containerRuntime,
  imageService,
  gates: deployGates,
  parts: containerParts,
  mountSources: mountPathSources,
  hooks: rolloutHooks,
  routers: trafficRouters
}

/** The running plugin. */
export interface Deployments {
  readonly service: DeploymentService
  readonly directory: DeploymentDirectory
  readonly mountPaths: MountPathClaims
  readonly hooks: DeployHookService
  readonly store: DeploymentStore
  readonly steps: BuildStepStore
  readonly engine: RolloutEngine
  readonly cleanup: Cleanup
  readonly servingReconciler: ServingReconciler
  readonly recovery: Recovery
  readonly buildQueue: BuildQueue
  readonly turns: OwnerTurns
  readonly healthWatch: HealthWatch
  readonly diskGuard: DiskGuard
  readonly teardown: DeploymentTeardown
  readonly counts: DeploymentCounts
  readonly tally: DeploymentTallyStore
  readonly streamBuildLog: (
    projectId: string,
    deploymentId: string,
    after: BuildLogPlace | undefined,
    signal: AbortSignal
  ) => AsyncIterable<SseFrame>
}

export function startDeployments({
  use,
  config,
  log,
  onStop
}: StartContext<typeof needs, Settings>): Deployments {
  const store = new DeploymentStore(use.db)
  const logs = new DeploymentLogStore(use.db)
  const steps = new BuildStepStore(use.db)
  const followUps = new FollowUpStore(use.db)
  const counts = new DeploymentCounts(new DeploymentCountStore(use.db))
  const records: DeploymentRecords = new DeploymentRecords({
    ...use,
    store,
    followUps,
    counts,
    onBuildEnded: () => {
      buildQueue.hasRoom()
    },
    onEnded: () => {
      turns.hasRoom()
    }
  })
  const turns = new OwnerTurns({ ...use, turns: new OwnerTurnStore(use.db), records, log })
  const buildQueue = new BuildQueue({ ...use, queue: new BuildQueueStore(use.db), records, log })
  const cleanup = new Cleanup({ ...use, store, logs, log })
  const traffic = new Traffic({ ...use, log })
  const shared = { ...use, store, logs, steps, followUps, records, buildQueue, turns, cleanup, traffic, log }
  const service = new DeploymentService({ ...shared, all: new GlobalDeploymentStore(use.db, use.clock) })
  const streamParts = { store, logs, poll: new BuildLogPoll({ logs, clock: use.clock }) }
  const engine = new RolloutEngine({ ...shared, timeoutMs: config.task_timeout_minutes * 60_000 })
  onStop(async () => {
    await engine.stop()
  })
  return {
    store,
    steps,
    counts,
    service,
    directory: new DeploymentSummaryStore(use.db),
    mountPaths: new MountPathClaims({ db: use.db, sources: use.mountSources }),
    hooks: new DeployHookService({ ...use, hooks: new DeployHookStore(use.db), service }),
    cleanup,
    servingReconciler: new ServingReconciler(shared),
    engine,
    recovery: new Recovery(shared),
    buildQueue,
    turns,
    healthWatch: new HealthWatch({ ...shared, intervalMs: config.health_check_interval_seconds * 1000 }),
    diskGuard: new DiskGuard({
      ...shared,
      imageRecords: new ImageRecords(use.db),
      limits: { bytes: config.container_disk_mib * 2 ** 20, inodes: config.container_files }
    }),
    teardown: new DeploymentTeardown(shared),
    tally: new DeploymentTallyStore(use.db),
    streamBuildLog: (projectId, deploymentId, after, signal) =>
      streamBuildLog({ projectId, deploymentId, after }, streamParts, signal)
  }
}

export function deploymentServices(
  provide: ServiceBinder,
  { service, directory, mountPaths: claims }: Deployments
): void {
  provide(deploymentQueue, service.queue)
  provide(mountPaths, {
    claim: async (applicationId, wanted, tx) => await claims.claim(applicationId, wanted, tx)
  })
  provide(deploymentDirectory, directory)
}

export function deploymentContributions(
  contribute: Contributor,
  { service, teardown, store, counts, tally }: Deployments
): void {
  contribute(figureSources, 'deployments', { figures: async () => await counts.figures() })
  contribute(deploymentCounters, 'deployments', {
    ended: async (scope, since) => await tally.ended(scope, since),
    failing: async scope => await tally.failing(scope),
    underWay: async scope => await tally.underWay(scope),
    total: async () => await tally.total()
  })
  contribute(cachedImages, 'deployments', { tags: async () => await store.failedImages() })
  contribute(applicationGates, 'deployments', { refuses: async id => await service.refuses(id) })
  contribute(applicationDeployHealth, 'deployments', { latest: async id => await service.latestHealth(id) })
  contribute(applicationTeardown, 'deployments', {
    teardown: async (id, context) => {
      await teardown.application(id, context)
    }
  })
}
