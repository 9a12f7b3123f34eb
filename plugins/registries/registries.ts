import { projectDirectory, projectTeardown } from 'busbar/api/projects'
import { type Contributor, kernel, type ServiceBinder, type StartContext } from 'busbar/sdk'
import { AccountService } from './account-service.js'
import { AccountStore } from './account-store.js'
import { registryAccounts, registryTrials } from './api.js'

export const needs = {
  db: kernel.database,
  secrets: kernel.secrets,
  clock: kernel.clock,
  projects: projectDirectory,
  trials: registryTrials
}

/** The running plugin. */
export interface Registries {
  readonly accounts: AccountService
  readonly store: AccountStore
}

export function startRegistries({ use, log }: StartContext<typeof needs, unknown>): Registries {
  const store = new AccountStore(use.db)
  return { store, accounts: new AccountService({ ...use, store, log }) }
}

export function registryServices(provide: ServiceBinder, { accounts }: Registries): void {
  // This alone: what a request may do goes through the routes.
  provide(registryAccounts, { find: async (projectId, image) => await accounts.find(projectId, image) })
}

export function registryContributions(contribute: Contributor, { store }: Registries): void {
  contribute(projectTeardown, 'registries', {
    teardown: async projectId => {
      await store.removeOfProject(projectId)
    }
  })
}
