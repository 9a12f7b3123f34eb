import { containerRuntime } from 'busbar/api/containers'
import { imageService } from 'busbar/api/images'
import { serviceCounters } from 'busbar/api/platform'
import { projectDirectory } from 'busbar/api/projects'
import { type Contributor, kernel, optional, type ServiceBinder, type StartContext } from 'busbar/sdk'
import {
  type ApplicationRegistry,
  applicationAddresses,
  applicationBuildTypes,
  applicationControl,
  applicationDeployHealth,
  applicationGates,
  applicationGitIntegrations,
  applicationLifecycle,
  applicationRegistry
} from './api.js'
import { offeredControl } from './application-control.js'
import { ApplicationRegistryService } from './application-registry.js'
import { ApplicationRemoval } from './application-removal.js'
import { ApplicationService } from './application-service.js'
import { ApplicationStore } from './application-store.js'
import { ContainerControl } from './container-control.js'
import { DeployStore } from './deploy-store.js'
import { SealedFields } from './sealed-fields.js'
import { StatusBoard } from './status-board.js'
import { StatusCountStore } from './status-count-store.js'
import { StatusFollower } from './status-follower.js'

export const needs = {
  db: kernel.database,
  events: kernel.events,
  bus: kernel.bus,
  secrets: kernel.secrets,
  clock: kernel.clock,
  resources: kernel.resources,
  projects: projectDirectory,
  runtime: optional(containerRuntime),
  imageService: optional(imageService),
  gates: applicationGates,
  buildTypes: applicationBuildTypes,
  addresses: applicationAddresses,
  lifecycle: applicationLifecycle,
  deployHealth: applicationDeployHealth,
  gitIntegrations: applicationGitIntegrations
}

/** The running plugin. */
export interface Applications {
  readonly applications: ApplicationService
  readonly control: ContainerControl
  readonly removal: ApplicationRemoval
  readonly follower: StatusFollower
  readonly registry: ApplicationRegistry
  readonly store: ApplicationStore
  readonly deploys: DeployStore
  readonly counts: StatusCountStore
}

export function startApplications({ use, log }: StartContext<typeof needs, unknown>): Applications {
  const store = new ApplicationStore(use.db)
  const deploys = new DeployStore(use.db)
  const board = new StatusBoard({ ...use, store: deploys })
  const sealed = new SealedFields(use.secrets)
  return {
    store,
    deploys,
    counts: new StatusCountStore(use.db),
    removal: new ApplicationRemoval(use),
    applications: new ApplicationService({ ...use, store, sealed, log }),
    control: new ContainerControl({ ...use, store, deploys, board }),
    follower: new StatusFollower({ ...use, store: deploys, board, log }),
    registry: new ApplicationRegistryService({ ...use, deploys, board, sealed })
  }
}

export function applicationServices(provide: ServiceBinder, { registry, control }: Applications): void {
  provide(applicationRegistry, registry)
  provide(applicationControl, offeredControl(control))
}

export function applicationContributions(contribute: Contributor, { counts }: Applications): void {
  contribute(serviceCounters, 'application', { count: async scope => await counts.count(scope) })
}
