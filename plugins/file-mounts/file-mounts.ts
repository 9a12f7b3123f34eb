import { applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { containerParts, mountPathSources, mountPaths } from 'busbar/api/deployments'
import { type Contributor, kernel, type StartContext } from 'busbar/sdk'
import { FileMountService } from './file-mount-service.js'
import { FileMountStore } from './file-mount-store.js'

export const needs = {
  db: kernel.database,
  secrets: kernel.secrets,
  clock: kernel.clock,
  applications: applicationRegistry,
  mountPaths
}

/** The running plugin. */
export interface FileMounts {
  readonly fileMounts: FileMountService
  readonly store: FileMountStore
}

export function startFileMounts({ use, log }: StartContext<typeof needs, unknown>): FileMounts {
  const store = new FileMountStore(use.db)
  return { store, fileMounts: new FileMountService({ ...use, store, log }) }
}

export function fileMountContributions(contribute: Contributor, { fileMounts, store }: FileMounts): void {
  contribute(containerParts, 'file-mounts', {
    partsFor: async application => await fileMounts.partsFor(application.id)
  })
  contribute(mountPathSources, 'file-mounts', {
    mountsOf: async (applicationId, tx) => await fileMounts.mountsOf(applicationId, tx)
  })
  contribute(applicationTeardown, 'file-mounts', {
    teardown: async applicationId => {
      await store.removeOfApplication(applicationId)
    }
  })
}
