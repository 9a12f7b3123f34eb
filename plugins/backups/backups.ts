import { join, resolve } from 'node:path'
import { failedBackups } from 'busbar/api/platform'
import { platformStore, recoveryRecipients } from 'busbar/api/platform-backups'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import {
  type Contributor,
  configChecks,
  kernel,
  optional,
  type ServiceBinder,
  type StartContext
} from 'busbar/sdk'
import { type HostPolicy, usualHostPolicy } from 'busbar/sdk/http1'
import { backupDestinations, backupKeeper, backupSources, sourceKinds } from './api.js'
import { backupWarnings } from './backup-warnings.js'
import { ConfigService } from './configs/config-service.js'
import { ConfigStore } from './configs/config-store.js'
import { DueRuns } from './configs/due-runs.js'
import { WaitingConfigs } from './configs/waiting-configs.js'
import { DestinationService } from './destinations/destination-service.js'
import { DestinationStore } from './destinations/destination-store.js'
import { localDestination, localProvider, s3Destination, s3Providers } from './destinations/providers.js'
import { DrillService } from './drills/drill-service.js'
import { DrillStore } from './drills/drill-store.js'
import { KeyRing } from './encryption/key-ring.js'
import { DumpReader } from './restores/dump-reader.js'
import { RestoreRunner } from './restores/restore-runner.js'
import { RestoreService } from './restores/restore-service.js'
import { RestoreStore } from './restores/restore-store.js'
import { BackupRunner } from './runs/backup-runner.js'
import { BackupService } from './runs/backup-service.js'
import { BackupStore } from './runs/backup-store.js'
import { DeletionStore } from './runs/deletion-store.js'
import { Deletions } from './runs/deletions.js'
import { LeftRuns } from './runs/left-runs.js'
import { Storages } from './runs/storages.js'
import type { Settings } from './settings.js'
import { Orphans } from './sources/orphans.js'
import { OwnerQueues } from './sources/owner-queues.js'
import { ProjectRemoval } from './sources/project-removal.js'
import { SourceStore } from './sources/source-store.js'
import { Sources } from './sources/sources.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  schedules: kernel.schedules,
  events: kernel.events,
  secrets: kernel.secrets,
  clock: kernel.clock,
  installation: kernel.installation,
  instance: kernel.instance,
  projects: projectDirectory,
  recovery: optional(recoveryRecipients),
  platform: optional(platformStore),
  contributedSources: backupSources,
  kinds: backupDestinations
}

/** The running plugin. */
export interface Backups {
  readonly destinations: DestinationService
  readonly configs: ConfigService
  readonly due: DueRuns
  readonly waiting: WaitingConfigs
  readonly backups: BackupService
  readonly runner: BackupRunner
  readonly deletions: Deletions
  readonly left: LeftRuns
  readonly restores: RestoreService
  readonly restoreRunner: RestoreRunner
  readonly drills: DrillService
  readonly orphans: Orphans
  readonly projectRemoval: ProjectRemoval
  readonly keys: KeyRing
  readonly store: BackupStore
  readonly settings: Settings
  /** Of what is kept on this machine. */
  readonly root: string
  /** Which private hosts destinations may be at. */
  readonly hosts: HostPolicy
}

export function startBackups({ use, config, log }: StartContext<typeof needs, Settings>): Backups {
  const { db } = use
  const root = resolve(config.directory ?? join(use.installation.directory, 'backups', 'databases'))
  const sources = new Sources(use.contributedSources)
  const sourceStore = new SourceStore(db)
  const store = new BackupStore(db)
  const restoreStore = new RestoreStore(db)
  const configStore = new ConfigStore(db)
  const destinationStore = new DestinationStore(db)
  const deletionStore = new DeletionStore(db)
  const shared = { ...use, log, sources, sourceStore, queues: new OwnerQueues(db) }
  const destinations = new DestinationService({ ...use, store: destinationStore })
  const storages = new Storages({ destinations, root, platform: use.platform })
  const keys = new KeyRing({ ...use, log })
  const deletions = new Deletions({
    ...shared,
    store: deletionStore,
    backups: store,
    storages,
    configs: configStore,
    retainCount: config.retain_count
  })
  const left = new LeftRuns(shared)
  const limitMinutes = config.run_limit_minutes
  const waiting = new WaitingConfigs({ ...use, configs: configStore })
  const runner = new BackupRunner({
    ...shared,
    waiting,
    store,
    storages,
    keys,
    deletions,
    configs: configStore,
    limitMinutes
  })
  const backups = new BackupService({ ...shared, store, restores: restoreStore, configs: configStore, left })
  const configs = new ConfigService({
    ...shared,
    store: configStore,
    destinations: destinationStore,
    backups,
    settings: config
  })
  const due = new DueRuns({
    ...shared,
    store: configStore,
    backups,
    runs: store,
    restores: restoreStore,
    runner,
    left,
    waiting
  })
  const reader = new DumpReader({ storages, keys })
  const restores = new RestoreService({ ...shared, store: restoreStore, backups: store })
  const restoreRunner = new RestoreRunner({
    ...shared,
    waiting,
    store: restoreStore,
    backups: store,
    reader,
    deletions,
    limitMinutes
  })
  const drills = new DrillService({
    ...shared,
    store: new DrillStore(db),
    backups: store,
    reader,
    deletions,
    limitMinutes
  })
  const orphans = new Orphans({
    ...shared,
    backups: store,
    restores: restoreStore,
    deletionStore,
    deletions,
    configs
  })
  const projectRemoval = new ProjectRemoval({
    db,
    log,
    configs,
    backups: store,
    store: deletionStore,
    storages
  })
  return {
    destinations,
    configs,
    due,
    waiting,
    backups,
    runner,
    deletions,
    left,
    restores,
    restoreRunner,
    drills,
    orphans,
    projectRemoval,
    keys,
    store,
    settings: config,
    root,
    hosts: config.private_hosts ?? usualHostPolicy(use.instance.loopbackOnly)
  }
}

export function backupServices(provide: ServiceBinder, { orphans }: Backups): void {
  // These alone: what a request may do goes through the routes.
  provide(backupKeeper, {
    removed: async (kind, resource, options, tx) => await orphans.removed(kind, resource, options, tx),
    made: async (kind, resource, tx) => await orphans.made(kind, resource, tx),
    impact: async (kind, id) => await orphans.impact(kind, id),
    activity: async (kind, id) => await orphans.activity(kind, id)
  })
}

export function backupContributions(
  contribute: Contributor,
  { projectRemoval, root, hosts, keys, store }: Backups
): void {
  for (const provider of s3Providers) contribute(backupDestinations, provider, s3Destination(hosts))
  contribute(backupDestinations, localProvider, localDestination(root))
  contribute(projectTeardown, 'backups', {
    teardown: async (projectId, { signal }) => {
      await projectRemoval.teardown(projectId, signal)
    }
  })
  for (const kind of sourceKinds)
    contribute(failedBackups, `backups-${kind}`, { count: async () => await store.failing(kind) })
  contribute(configChecks, 'backups', {
    warnings: async () =>
      backupWarnings({
        hasBackups: await store.hasAny(),
        hasRecoveryKey: (await keys.recovery()).length > 0
      })
  })
}
