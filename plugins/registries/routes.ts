import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Registries } from './registries.js'
import { account, accountBody, deletedAnswer, trialAnswer } from './schemas.js'

const ofProject = '/api/projects/:projectId/registries'
const inProject = { param: 'projectId' } as const
const ofInstallation = '/api/registries'
const admins = { role: 'admin', project: 'never-pinned' } as const
/** A registry is asked by the platform, as often as it locks accounts for. */
const trialLimit = { max: 10, windowSeconds: 60 }
const trialMs = 45_000

export function routes(route: RouteDeclarer<Registries>) {
  projectRoutes(route)
  installationRoutes(route)
}

function projectRoutes(route: RouteDeclarer<Registries>) {
  const group = 'Project Registry Accounts'
  route.list({
    url: ofProject,
    group,
    operationId: 'ListProjectRegistryAccounts',
    summary: 'Get Registry Accounts',
    items: account,
    access: allow.token('read', { project: inProject }),
    handler: async ({ project, page }, { accounts }) => await accounts.list(project, page)
  })
  route({
    method: 'PUT',
    url: ofProject,
    group,
    operationId: 'SetProjectRegistryAccount',
    summary: 'Set Registry Account',
    access: allow.token('write', { project: inProject }),
    schema: { body: accountBody, response: { 200: account } },
    audit: { action: 'set_registry_account', resource: 'project', id: inProject },
    handler: async ({ project, body }, { accounts }) => await accounts.put(project, body)
  })
  route({
    method: 'DELETE',
    url: `${ofProject}/:registryAccountId`,
    group,
    operationId: 'DeleteProjectRegistryAccount',
    summary: 'Delete Registry Account',
    access: allow.token('write', { project: inProject }),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'delete_registry_account', resource: 'project', id: inProject },
    handler: async ({ project, params }, { accounts }) =>
      await accounts.remove(project, params.registryAccountId)
  })
  route({
    method: 'POST',
    url: `${ofProject}/:registryAccountId/test`,
    group,
    operationId: 'TestProjectRegistryAccount',
    summary: 'Test Registry Account',
    access: allow.token('write', { project: inProject }),
    schema: { response: { 200: trialAnswer } },
    limit: trialLimit,
    timeoutMs: trialMs,
    audit: { action: 'test_registry_account', resource: 'project', id: inProject },
    handler: async ({ project, params }, { accounts }) =>
      await accounts.try(project, params.registryAccountId)
  })
}

function installationRoutes(route: RouteDeclarer<Registries>) {
  const group = 'Registry Accounts (Admin)'
  const id = { param: 'registryAccountId' } as const
  route.list({
    url: ofInstallation,
    group,
    operationId: 'ListRegistryAccounts',
    summary: 'Get Registry Accounts of the Installation',
    items: account,
    access: allow.token('read', admins),
    handler: async ({ page }, { accounts }) => await accounts.list(null, page)
  })
  route({
    method: 'PUT',
    url: ofInstallation,
    group,
    operationId: 'SetRegistryAccount',
    summary: 'Set Registry Account of the Installation',
    access: allow.token('write', admins),
    schema: { body: accountBody, response: { 200: account } },
    audit: { action: 'set_registry_account', resource: 'registry_account', id: { result: 'id' } },
    handler: async ({ body }, { accounts }) => await accounts.put(null, body)
  })
  route({
    method: 'DELETE',
    url: `${ofInstallation}/:registryAccountId`,
    group,
    operationId: 'DeleteRegistryAccount',
    summary: 'Delete Registry Account of the Installation',
    access: allow.token('write', admins),
    schema: { response: { 200: deletedAnswer } },
    audit: { action: 'delete_registry_account', resource: 'registry_account', id },
    handler: async ({ params }, { accounts }) => await accounts.remove(null, params.registryAccountId)
  })
  route({
    method: 'POST',
    url: `${ofInstallation}/:registryAccountId/test`,
    group,
    operationId: 'TestRegistryAccount',
    summary: 'Test Registry Account of the Installation',
    access: allow.token('write', admins),
    schema: { response: { 200: trialAnswer } },
    limit: trialLimit,
    timeoutMs: trialMs,
    audit: { action: 'test_registry_account', resource: 'registry_account', id },
    handler: async ({ params }, { accounts }) => await accounts.try(null, params.registryAccountId)
  })
}
