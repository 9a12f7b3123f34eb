import { applicationRegistry, applicationTeardown } from 'busbar/api/applications'
import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { type Contributor, kernel, type ServiceBinder, type StartContext } from 'busbar/sdk'
import { environmentVariables, variableSources } from './api.js'
import { VariableService } from './variable-service.js'
import { VariableStore } from './variable-store.js'

export const needs = {
  db: kernel.database,
  secrets: kernel.secrets,
  clock: kernel.clock,
  projects: projectDirectory,
  applications: applicationRegistry,
  sources: variableSources
}

/** The running plugin. */
export interface Environment {
  readonly variables: VariableService
  readonly store: VariableStore
}

export function startEnvironment({ use, log }: StartContext<typeof needs, unknown>): Environment {
  const store = new VariableStore(use.db)
  return { store, variables: new VariableService({ ...use, store, log }) }
}

export function environmentServices(provide: ServiceBinder, { variables }: Environment): void {
  // This alone: what a request may do goes through the routes.
  provide(environmentVariables, {
    merged: async (projectId, applicationId) => await variables.merged(projectId, applicationId)
  })
}

export function environmentContributions(contribute: Contributor, { store }: Environment): void {
  contribute(projectTeardown, 'environment', {
    teardown: async projectId => {
      await store.removeOfProject(projectId)
    }
  })
  contribute(applicationTeardown, 'environment', {
    teardown: async applicationId => {
      await store.removeOfApplication(applicationId)
    }
  })
}
