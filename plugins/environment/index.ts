import { applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { definePlugin, kernel } from 'busbar/sdk'
import { environmentVariables } from './api.js'
import { m001 } from './migrations/001-create-variables.js'
import { routes } from './routes.js'
import { VariableService } from './variable-service.js'
import { VariableStore } from './variable-store.js'

/** The running plugin. */
export interface Environment {
  readonly variables: VariableService
  readonly store: VariableStore
}

export default definePlugin({
  id: 'environment',
  needs: {
    db: kernel.database,
    secrets: kernel.secrets,
    clock: kernel.clock,
    projects: projectDirectory,
    applications: applicationRegistry
  },
  migrations: [m001],
  start ({ use, log }): Environment {
    const store = new VariableStore(use.db)
    return { store, variables: new VariableService({ ...use, store, log }) }
  },
  provides (provide, { variables }) {
    provide(environmentVariables, variables)
  },
  contributes (contribute, { store }) {
    contribute(projectTeardown, 'environment', { teardown: async projectId => { await store.removeOfProject(projectId) } })
    contribute(applicationTeardown, 'environment', { teardown: async applicationId => { await store.removeOfApplication(applicationId) } })
  },
  routes
})
