import { applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { containerRuntime } from 'busbar/api/containers'
import { containerParts, mountPathSources, mountPaths } from 'busbar/api/deployments'
import { type Contributor, kernel, type StartContext } from 'busbar/sdk'
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
  mountPaths
}

/** The running plugin. */
export interface Volumes {
  readonly volumes: VolumeService
  readonly discarded: DiscardedVolumes
  readonly removal: VolumeRemoval
}

export function startVolumes({ use, log }: StartContext<typeof needs, unknown>): Volumes {
  const store = new VolumeStore(use.db)
  const engineVolumes = new EngineVolumeStore(use.db)
  const discarded = new DiscardedVolumes({ ...use, store: engineVolumes, log })
  const sizes = new VolumeSizes({ ...use, store, log })
  return {
    discarded,
    removal: new VolumeRemoval({ ...use, store: engineVolumes }),
    volumes: new VolumeService({ ...use, store, engineVolumes, discarded, sizes, log })
  }
}

export function volumeContributions(contribute: Contributor, { volumes, removal }: Volumes): void {
  contribute(containerParts, 'volumes', {
    partsFor: async application => await volumes.partsFor(application)
  })
  contribute(mountPathSources, 'volumes', {
    mountsOf: async (applicationId, tx) => await volumes.mountsOf(applicationId, tx)
  })
  contribute(applicationTeardown, 'volumes', {
    teardown: async applicationId => {
      await removal.ofApplication(applicationId)
    }
  })
}
