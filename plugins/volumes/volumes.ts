import {
  applicationControl,
  applicationGates,
  applicationRegistry,
  applicationTeardown
} from 'busbar/api/applications'
import { backupKeeper, backupSources } from 'busbar/api/backups'
import { engineDisk } from 'busbar/api/builds'
import { containerRuntime } from 'busbar/api/containers'
import {
  containerParts,
  deployGates,
  deploymentDirectory,
  mountPathSources,
  mountPaths
} from 'busbar/api/deployments'
import { type Contributor, kernel, optional, type StartContext } from 'busbar/sdk'
import { LeftWork } from './backup/left-work.js'
import { VolumeBackups } from './backup/volume-backups.js'
import { WorkStore } from './backup/work-store.js'
import { DiscardedVolumes } from './discarded-volumes.js'
import { EngineVolumeStore } from './engine-volume-store.js'
import { VolumeRemoval } from './volume-removal.js'
import { VolumeService } from './volume-service.js'
import { VolumeSizes } from './volume-sizes.js'
import { VolumeStore } from './volume-store.js'

export const needs = {
  db: kernel.database,
  clock: kernel.clock,
  resources: kernel.resources,
  bus: kernel.bus,
  runtime: containerRuntime,
  applications: applicationRegistry,
  control: applicationControl,
  mountPaths,
  deployments: deploymentDirectory,
  keeper: optional(backupKeeper),
  disk: optional(engineDisk)
}

/** The running plugin. */
export interface Volumes {
  readonly volumes: VolumeService
  readonly discarded: DiscardedVolumes
  readonly removal: VolumeRemoval
  readonly backups: VolumeBackups
  readonly leftWork: LeftWork
}

export function startVolumes({ use, log }: StartContext<typeof needs, unknown>): Volumes {
  const store = new VolumeStore(use.db)
  const engineVolumes = new EngineVolumeStore(use.db)
  const discarded = new DiscardedVolumes({ ...use, store: engineVolumes, log })
  const sizes = new VolumeSizes({ ...use, store, log })
  const work = new WorkStore(use.db)
  const removal = new VolumeRemoval({ ...use, store: engineVolumes })
  const backups = new VolumeBackups({ ...use, store: work, engineVolumes, discarded, removal })
  return {
    discarded,
    backups,
    leftWork: new LeftWork({ ...use, store: work, backups, log }),
    removal,
    volumes: new VolumeService({ ...use, store, engineVolumes, discarded, backups, sizes, log })
  }
}

export function volumeContributions(contribute: Contributor, { volumes, removal, backups }: Volumes): void {
  contribute(backupSources, 'volume', backups)
  contribute(applicationGates, 'volumes', { refuses: async id => await backups.refuses(id) })
  contribute(deployGates, 'volumes', { refuses: async ({ id }) => await backups.refuses(id) })
  contribute(containerParts, 'volumes', {
    partsFor: async application => await volumes.partsFor(application)
  })
  contribute(mountPathSources, 'volumes', {
    mountsOf: async (applicationId, tx) => await volumes.mountsOf(applicationId, tx)
  })
  contribute(applicationTeardown, 'volumes', {
    teardown: async (applicationId, { signal }) => {
      await removal.ofApplication(applicationId, signal)
    }
  })
}
