import { resourceNames } from 'busbar/api/audit-logs'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { containerRuntime } from 'busbar/api/runtime-docker'
import { access, definePlugin, kernel, optional } from 'busbar/sdk'
import { applicationAddresses, applicationBuildTypes, applicationDeployHealth, applicationGates, applicationGitIntegrations, applicationLifecycle, applicationRegistry, applicationTeardown, type ApplicationRegistry } from './api.js'
import { applicationRegistryOf } from './application-registry.js'
import { ApplicationRemoval } from './application-removal.js'
import { ApplicationService } from './application-service.js'
import { ApplicationStore } from './application-store.js'
import { channels } from './channels.js'
import { ContainerControl } from './container-control.js'
import { DeployStore } from './deploy-store.js'
import { jobs, singletons } from './jobs.js'
import { m001 } from './migrations/001-create-applications.js'
import { m002 } from './migrations/002-add-registry-credentials.js'
import { m003 } from './migrations/003-add-start-command.js'
import { RemovalStore } from './removal-store.js'
import { routes } from './routes.js'
import { SealedFields } from './sealed-fields.js'
import { StatusBoard } from './status-board.js'
import { StatusFollower } from './status-follower.js'

/** The running plugin. */
export interface Applications {
  readonly applications: ApplicationService
  readonly control: ContainerControl
  readonly removal: ApplicationRemoval
  readonly follower: StatusFollower
  readonly registry: ApplicationRegistry
  readonly store: ApplicationStore
}

export default definePlugin({
  id: 'applications',
  needs: {
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
  },
  migrations: [m001, m002, m003],
  async start ({ use, log }): Promise<Applications> {
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
      registry: applicationRegistryOf({ ...use, deploys, board, sealed })
    }
  },
  provides (provide, { registry }) {
    provide(applicationRegistry, registry)
  },
  contributes (contribute, { store, removal }) {
    contribute(access.resources, 'application', { ownerOf: async id => await store.ownerOf(id) })
    contribute(resourceNames, 'application', { namesOf: async ids => await store.namesOf(ids) })
    contribute(projectTeardown, 'applications', { teardown: async (projectId, { signal }) => { await removal.teardownProject(projectId, signal) } })
  },
  routes,
  channels,
  jobs,
  singletons
})
