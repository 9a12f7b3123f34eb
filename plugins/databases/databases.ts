import { applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { backupKeeper, backupSources } from 'busbar/api/backups'
import { engineDisk, imagePreparation, preparedImages } from 'busbar/api/builds'
import { containerRuntime } from 'busbar/api/containers'
import { publicAddress } from 'busbar/api/domains'
import { variableSources } from 'busbar/api/environment'
import { type LogArchive, logArchive, logSources } from 'busbar/api/logs'
import { serviceCounters } from 'busbar/api/platform'
import { projectDirectory } from 'busbar/api/projects'
import { type Contributor, kernel, optional, type StartContext } from 'busbar/sdk'
import { databaseEngines } from './api.js'
import { AttachmentService } from './attachments/attachment-service.js'
import { AttachmentStore } from './attachments/attachment-store.js'
import type { BackupRunners } from './backups/backup-runners.js'
import { DatabaseBackupSource } from './backups/backup-source.js'
import { GivenUpVolumes } from './backups/given-up-volumes.js'
import { LeftWork } from './backups/left-work.js'
import { EngineChoice } from './engines/engine-choice.js'
import { builtInEngines } from './engines/kinds.js'
import { problems } from './problems.js'
import { DatabaseHolds } from './records/database-holds.js'
import { DatabaseRemoval } from './records/database-removal.js'
import { DatabaseService } from './records/database-service.js'
import { DatabaseStore } from './records/database-store.js'
import { DeletionImpact } from './records/deletion-impact.js'
import { SealedCredentials } from './records/sealed-credentials.js'
import { ContainerControl } from './servers/container-control.js'
import { ControlHold } from './servers/control-hold.js'
import { ExternalPorts } from './servers/external-ports.js'
import { ExternalReach } from './servers/external-reach.js'
import { ImageSource } from './servers/image-source.js'
import { Provisioner } from './servers/provisioner.js'
import { ServerContainer } from './servers/server-container.js'
import { WorkQueue } from './servers/work-queue.js'
import type { Settings } from './settings.js'
import { StatusBoard } from './status/status-board.js'
import { countByStatus } from './status/status-counts.js'
import { StatusFollower } from './status/status-follower.js'
import type { UpgradeRunner } from './upgrades/upgrade-runner.js'
import { UpgradeService } from './upgrades/upgrade-service.js'
import { UpgradeStore } from './upgrades/upgrade-store.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  events: kernel.events,
  bus: kernel.bus,
  secrets: kernel.secrets,
  clock: kernel.clock,
  resources: kernel.resources,
  projects: projectDirectory,
  applications: applicationRegistry,
  runtime: optional(containerRuntime),
  preparation: optional(imagePreparation),
  prepared: optional(preparedImages),
  disk: optional(engineDisk),
  logs: optional(logArchive),
  backups: optional(backupKeeper),
  address: optional(publicAddress),
  engines: databaseEngines
}

/** The running plugin. */
export interface Databases {
  readonly databases: DatabaseService
  readonly control: ContainerControl
  readonly removal: DatabaseRemoval
  readonly attachments: AttachmentService
  readonly attachmentStore: AttachmentStore
  readonly impact: DeletionImpact
  readonly provisioner: Provisioner
  readonly queue: WorkQueue
  readonly upgrades: UpgradeService
  /** Its code is loaded when something is upgraded. */
  readonly upgradeRunner: () => Promise<UpgradeRunner>
  readonly follower: StatusFollower
  readonly ports: ExternalPorts
  readonly leftWork: LeftWork
  readonly givenUp: GivenUpVolumes
  readonly store: DatabaseStore
  readonly backupSource: DatabaseBackupSource
  readonly logs: () => LogArchive
}

export function startDatabases({ use, config, log }: StartContext<typeof needs, Settings>): Databases {
  const store = new DatabaseStore(use.db)
  const engines = new EngineChoice(use.engines)
  const sealed = new SealedCredentials({ ...use, log })
  const board = new StatusBoard({ ...use, store })
  const servers = new ServerContainer({ ...use, store, engines, sealed, readySeconds: config.ready_seconds })
  const images = new ImageSource(use)
  const queue = new WorkQueue({ ...use, store })
  const databases = new DatabaseService({ ...use, store, engines, sealed, queue, config })
  const attachmentStore = new AttachmentStore(use.db)
  const upgrades = new UpgradeStore(use.db)
  const holds = new DatabaseHolds(use.db)
  const hold = new ControlHold({ ...use, store, board, holds })
  const reach = new ExternalReach({ ...use, store, config })
  const provisioner = new Provisioner({ ...use, databases, store, board, images, servers, log })
  const givenUp = new GivenUpVolumes({ ...use, store })
  const backupSource = new DatabaseBackupSource({
    ...use,
    store,
    databases,
    engines,
    sealed,
    holds,
    runners: async (): Promise<BackupRunners> => {
      const { backupRunners } = await import('./backups/backup-runners.js')
      return backupRunners({
        ...use,
        store,
        board,
        engines,
        images,
        servers,
        sealed,
        provisioner,
        givenUp,
        log,
        keepDays: config.upgrade_keep_days
      })
    }
  })
  return {
    store,
    databases,
    attachmentStore,
    attachments: new AttachmentService({ ...use, attachments: attachmentStore, databases, engines, sealed }),
    control: new ContainerControl({ ...use, databases, store, board, hold, reach }),
    removal: new DatabaseRemoval({ ...use, store, attachments: attachmentStore, source: backupSource }),
    impact: new DeletionImpact({ ...use, databases }),
    provisioner,
    queue,
    upgrades: new UpgradeService({ ...use, upgrades, databases, board, engines, sealed, queue, log }),
    upgradeRunner: async () => {
      const { UpgradeRunner: Runner } = await import('./upgrades/upgrade-runner.js')
      return new Runner({
        ...use,
        upgrades,
        store,
        databases,
        board,
        images,
        servers,
        engines,
        provisioner,
        log,
        keepDays: config.upgrade_keep_days
      })
    },
    follower: new StatusFollower({ ...use, store, board, log }),
    ports: new ExternalPorts({ ...use, store, reach, log }),
    leftWork: new LeftWork({ ...use, store, source: backupSource, control: hold, log }),
    givenUp,
    backupSource,
    logs: () => {
      const archive = use.logs.get()
      if (archive === undefined) throw problems.logsOff({ plugin: 'logs' })
      return archive
    }
  }
}

export function databaseContributions(
  contribute: Contributor,
  { store, attachments, attachmentStore, backupSource }: Databases
): void {
  for (const [type, kind] of Object.entries(builtInEngines)) contribute(databaseEngines, type, kind)
  contribute(backupSources, 'database', backupSource)
  contribute(logSources, 'database', { sourceOf: ({ databaseId }) => databaseId })
  contribute(serviceCounters, 'database', { count: async scope => await countByStatus(store, scope) })
  contribute(variableSources, 'databases', {
    variablesOf: async applicationId => await attachments.variablesOf(applicationId)
  })
  contribute(applicationTeardown, 'databases', {
    teardown: async applicationId => {
      await attachmentStore.removeOfApplication(applicationId)
    }
  })
}
