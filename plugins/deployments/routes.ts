import { inApplication } from 'busbar/api/applications'
import { allow, list, type RouteDeclarer, readPage, type SignedInCaller, sse } from 'busbar/sdk'
import type { Trigger } from './api.js'
import type { Deployments } from './deployments.js'
import { deployHookRoutes } from './hooks/deploy-hook-routes.js'
import { readFilter } from './records/deployment-filter.js'
import { buildStep, deployment, globalDeployment, globalQuery, rollbackBody } from './schemas.js'

const deployments = 'Application Deployments'
const actions = 'Application Actions'
const application = '/api/projects/:projectId/applications/:applicationId'
const one = `${application}/deployments/:deploymentId` as const
const ofDeployment = {
  ...inApplication,
  chain: { ...inApplication.chain, deploymentId: 'deployment' }
} as const
const applicationParam = { param: 'applicationId' } as const

const triggerOf = (caller: SignedInCaller): Trigger => (caller.kind === 'token' ? 'api' : 'manual')

export function routes(route: RouteDeclarer<Deployments>) {
  route({
    method: 'POST',
    url: `${application}/deploy`,
    group: deployments,
    operationId: 'DeployApplication',
    summary: 'Deploy App',
    idempotent: true,
    access: allow.token('deploy', { project: inApplication }),
    schema: { response: { 202: deployment } },
    audit: { action: 'deploy_application', resource: 'application', id: applicationParam },
    handler: async ({ params, caller, idempotencyKey }, { service }) =>
      await service.deploy(params.applicationId, triggerOf(caller), idempotencyKey)
  })
  route.list({
    url: `${application}/deployments`,
    group: deployments,
    operationId: 'ListDeployments',
    summary: 'Get Deployments',
    items: deployment,
    access: allow.token('read', { project: inApplication }),
    handler: async ({ project, params, page }, { service }) =>
      await service.list(project, params.applicationId, page)
  })
  route({
    method: 'GET',
    url: one,
    group: deployments,
    operationId: 'GetDeployment',
    summary: 'Get Deployment',
    access: allow.token('read', { project: ofDeployment }),
    schema: { response: { 200: deployment } },
    handler: async ({ project, params }, { service }) => await service.get(project, params.deploymentId)
  })
  route({
    method: 'GET',
    url: `${one}/build-logs`,
    group: deployments,
    operationId: 'StreamBuildLogs',
    summary: 'Stream Build Logs',
    produces: 'text/event-stream',
    access: allow.token('read', { project: ofDeployment }),
    handler: ({ project, params, signal }, { streamBuildLog }) =>
      sse(streamBuildLog(project, params.deploymentId, signal))
  })
  route({
    method: 'GET',
    url: `${one}/build-steps`,
    group: deployments,
    operationId: 'ListBuildSteps',
    summary: 'Get Build Steps',
    access: allow.token('read', { project: ofDeployment }),
    schema: { response: { 200: list(buildStep) } },
    handler: async ({ params }, { steps }) => await steps.list(params.deploymentId)
  })
  route({
    method: 'POST',
    url: `${one}/cancel`,
    group: deployments,
    operationId: 'CancelDeployment',
    summary: 'Cancel Deployment',
    access: allow.token('deploy', { project: ofDeployment }),
    schema: { response: { 202: deployment } },
    audit: { action: 'cancel_deployment', resource: 'application', id: applicationParam },
    handler: async ({ project, params }, { service }) => await service.cancel(project, params.deploymentId)
  })
  route({
    method: 'POST',
    url: `${application}/rollback`,
    group: deployments,
    operationId: 'RollbackDeployment',
    summary: 'Rollback Deployment',
    access: allow.token('deploy', { project: inApplication }),
    schema: { body: rollbackBody, response: { 202: deployment } },
    audit: { action: 'rollback_application', resource: 'application', id: applicationParam },
    handler: async ({ params, body }, { service }) =>
      await service.rollBack(params.applicationId, body.deployment_id)
  })
  route({
    method: 'POST',
    url: `${application}/reload`,
    group: actions,
    operationId: 'ReloadApplication',
    summary: 'Reload App',
    access: allow.token('deploy', { project: inApplication }),
    schema: { response: { 202: deployment } },
    audit: { action: 'reload_application', resource: 'application', id: applicationParam },
    handler: async ({ params }, { service }) => await service.reload(params.applicationId)
  })
  route({
    method: 'POST',
    url: `${application}/rebuild`,
    group: actions,
    operationId: 'RebuildApplication',
    summary: 'Rebuild App',
    access: allow.token('deploy', { project: inApplication }),
    schema: { response: { 202: deployment } },
    audit: { action: 'rebuild_application', resource: 'application', id: applicationParam },
    handler: async ({ params }, { service }) => await service.rebuild(params.applicationId)
  })
  route({
    method: 'POST',
    url: `${application}/build`,
    group: actions,
    operationId: 'BuildApplication',
    summary: 'Build App',
    idempotent: true,
    access: allow.token('deploy', { project: inApplication }),
    schema: { response: { 202: deployment } },
    audit: { action: 'build_application', resource: 'application', id: applicationParam },
    handler: async ({ params, caller, idempotencyKey }, { service }) =>
      await service.build(params.applicationId, triggerOf(caller), idempotencyKey)
  })
  route({
    method: 'GET',
    url: '/api/deployments',
    group: 'Platform',
    operationId: 'GetGlobalDeployments',
    summary: 'Get All Deployments',
    access: allow.token('read', { project: 'filtered' }),
    schema: { query: globalQuery, response: { 200: list(globalDeployment) } },
    handler: async (request, { service }) =>
      await service.listAll(readFilter(request.query), readPage(request.query), request)
  })
  deployHookRoutes(route)
}
