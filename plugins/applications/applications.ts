import { resourceNames } from 'busbar/api/audit-logs'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { access, type Contributor, kernel, optional, type ServiceBinder, type StartContext } from 'busbar/sdk'
import {
  type ApplicationRegistry,
  applicationAddresses,
  applicationBuildTypes,
  applicationDeployHealth,
  applicationGates,
  applicationGitIntegrations,
  applicationLifecycle,
  applicationRegistry,
  applicationTeardown
} from './api.js'
import { ApplicationRegistryService } from './application-registry.js'
import { ApplicationRemoval } from './application-removal.js'
import { ApplicationService } from './application-service.js'
import { ApplicationStore } from './application-store.js'
import { ContainerControl } from './container-control.js'
import { DeployStore } from './deploy-store.js'
import { RemovalStore } from './removal-store.js'
import { SealedFields } from './sealed-fields.js'
import { StatusBoard } from './status-board.js'
import { StatusFollower } from './status-follower.js'

export const needs = {
  db: kernel.database,
  jobs: kernel.jobs,
  events: kernel.events,
  bus: kernel.bus,
  secrets: kernel.secrets,
  clock: kernel.clock,
  dormant: kernel.dormant,
  projects: projectDirectory,
  runtime: optional(containerRuntime),
  gates: applicationGates,
  buildTypes: applicationBuildTypes,
  addresses: applicationAddresses,
  lifecycle: applicationLifecycle,
  deployHealth: applicationDeployHealth,
  gitIntegrations: applicationGitIntegrations,
  teardowns: applicationTeardown
}

/** The running plugin. */
export interface Applications {
  readonly applications: ApplicationService
  readonly control: ContainerControl
  readonly removal: ApplicationRemoval
  readonly follower: StatusFollower
  readonly registry: ApplicationRegistry
  readonly store: ApplicationStore
}

export async function startApplications({
  use,
  log
}: StartContext<typeof needs, unknown>): Promise<Applications> {
  const store = new ApplicationStore(use.db)
  const deploys = new DeployStore(use.db)
  const board = new StatusBoard(deploys, use.bus)
  const sealed = new SealedFields(use.secrets)
  const removal = new ApplicationRemoval({ ...use, store: new RemovalStore(use.db), log })
  await removal.resume()
  return {
    store,
    removal,
    applications: new ApplicationService({ ...use, store, sealed }),
    control: new ContainerControl({ ...use, store, deploys, board }),
    follower: new StatusFollower({ ...use, store: deploys, board, log }),
    registry: new ApplicationRegistryService({ ...use, deploys, board, sealed })
  }
}

export function applicationServices(provide: ServiceBinder, { registry }: Applications): void {
  provide(applicationRegistry, registry)
}

export function applicationContributions(contribute: Contributor, { store, removal }: Applications): void {
  contribute(access.resources, 'application', { ownerOf: async id => await store.ownerOf(id) })
  contribute(resourceNames, 'application', { namesOf: async ids => await store.namesOf(ids) })
  contribute(projectTeardown, 'applications', {
    teardown: async (projectId, { signal }) => {
      await removal.teardownProject(projectId, signal)
    }
  })
}
