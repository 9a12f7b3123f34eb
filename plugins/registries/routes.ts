import { allow, type RouteDeclarer } from 'busbar/sdk'
import { problems } from './problems.js'
import type { Registries } from './registries.js'
import { account, accountBody, accountParams, deletedAnswer, trialAnswer } from './schemas.js'

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
    description: 'The accounts of the project, by registry. Passwords are in no answer.',
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
    description:
      'Keeps an account of a registry, with which images are pulled that it does not hand out to everybody. It takes the place of one for the same registry, which keeps its id.',
    problems: [problems.badRegistry, problems.projectGone, problems.tooMany],
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
    description: 'Pulls that begin from now on do without it.',
    problems: [problems.notFound],
    access: allow.token('write', { project: inProject }),
    schema: { params: accountParams, response: { 200: deletedAnswer } },
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
    description:
      'Asks the registry now whether it lets the account in. Whether the account may pull a certain image shows only when that is pulled.',
    problems: [problems.notFound, problems.unreadable],
    access: allow.token('write', { project: inProject }),
    schema: { params: accountParams, response: { 200: trialAnswer } },
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
    description:
      'The accounts of the installation, which are used for every project, by registry. Passwords are in no answer.',
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
    description:
      'Keeps an account of a registry, with which images are pulled that it does not hand out to everybody. It takes the place of one for the same registry, which keeps its id.',
    problems: [problems.badRegistry, problems.tooMany],
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
    description: 'Pulls that begin from now on do without it.',
    problems: [problems.notFound],
    access: allow.token('write', admins),
    schema: { params: accountParams, response: { 200: deletedAnswer } },
    audit: { action: 'delete_registry_account', resource: 'registry_account', id },
    handler: async ({ params }, { accounts }) => await accounts.remove(null, params.registryAccountId)
  })
  route({
    method: 'POST',
    url: `${ofInstallation}/:registryAccountId/test`,
    group,
    operationId: 'TestRegistryAccount',
    summary: 'Test Registry Account of the Installation',
    description:
      'Asks the registry now whether it lets the account in. Whether the account may pull a certain image shows only when that is pulled.',
    problems: [problems.notFound, problems.unreadable],
    access: allow.token('write', admins),
    schema: { params: accountParams, response: { 200: trialAnswer } },
    limit: trialLimit,
    timeoutMs: trialMs,
    audit: { action: 'test_registry_account', resource: 'registry_account', id },
    handler: async ({ params }, { accounts }) => await accounts.try(null, params.registryAccountId)
  })
}
