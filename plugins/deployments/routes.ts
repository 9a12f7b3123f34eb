import { inApplication } from 'busbar/api/applications'
import { engineProblems } from 'busbar/api/containers'
import { allow, pagedList, pageOf, type RouteDeclarer, type SignedInCaller, sse } from 'busbar/sdk'
import type { Trigger } from './api.js'
import type { Deployments } from './deployments.js'
import { deployHookRoutes } from './hooks/deploy-hook-routes.js'
import { problems } from './problems.js'
import { readEventId } from './records/build-log-place.js'
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

/** What is refused before a deployment is recorded. */
const beginning = [problems.applicationMissing, problems.noSource, problems.active]

const triggerOf = (caller: SignedInCaller): Trigger => (caller.kind === 'token' ? 'api' : 'manual')

export function routes(route: RouteDeclarer<Deployments>) {
  route({
    method: 'POST',
    url: `${application}/deploy`,
    group: deployments,
    operationId: 'DeployApplication',
    summary: 'Deploy App',
    description:
      'Builds or pulls the source as it is now, starts it beside what runs, and switches the requests over once it is healthy. When it fails, what ran before goes on. One deployment at a time is active for an application.',
    problems: beginning,
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
    description: 'The newest first. Of the newest 20 `build_logs` has the end of the log, at most 16 KiB.',
    problems: [problems.applicationMissing],
    items: deployment,
    access: allow.token('read', { project: inApplication }),
    version: async ({ project, params }, { service }) =>
      await service.listVersion(project, params.applicationId),
    handler: async ({ project, params, page }, { service }) =>
      await service.list(project, params.applicationId, page)
  })
  route({
    method: 'GET',
    url: one,
    group: deployments,
    operationId: 'GetDeployment',
    summary: 'Get Deployment',
    problems: [problems.deploymentMissing],
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
    description:
      'The log as server-sent events: of a deployment that is being built the lines from now on, of one that has ended all of them. Each `data:` is a line as JSON (`ts`, `level`, `stream`, `msg`); an event `error` says why it failed, and `done` ends the stream. A reader who comes again with the `id` of the last line it has as `Last-Event-ID` gets what stands behind that; `0` is the beginning.',
    problems: [problems.deploymentMissing],
    produces: 'text/event-stream',
    access: allow.token('read', { project: ofDeployment }),
    handler: ({ project, params, headers, signal }, { streamBuildLog }) =>
      sse(streamBuildLog(project, params.deploymentId, readEventId(headers['last-event-id']), signal))
  })
  route.list({
    url: `${one}/build-steps`,
    group: deployments,
    operationId: 'ListBuildSteps',
    summary: 'Get Build Steps',
    description: 'The steps of the build in their order. A builder that does not tell steps has none.',
    access: allow.token('read', { project: ofDeployment }),
    items: buildStep,
    handler: async ({ params, page }, { steps }) => pageOf(page, await steps.list(params.deploymentId))
  })
  route({
    method: 'POST',
    url: `${one}/cancel`,
    group: deployments,
    operationId: 'CancelDeployment',
    summary: 'Cancel Deployment',
    description:
      'Asks the deployment to end, which it does soon after the answer, as `failed` with the error `cancelled`. What ran before goes on.',
    problems: [problems.deploymentMissing, problems.notActive, problems.tooLate],
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
    description:
      "Starts the image of an earlier deployment, with today's settings and variables. Nothing is built.",
    problems: [
      problems.rollbackForeign,
      problems.rollbackUnsuccessful,
      problems.rollbackNoImage,
      problems.imageGone,
      ...beginning,
      ...engineProblems
    ],
    idempotent: true,
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
    description:
      "Makes the container anew from the image that was deployed last, with today's settings and variables. Nothing is built.",
    problems: [
      problems.nothingToReload,
      problems.rollbackNoImage,
      problems.imageGone,
      ...beginning,
      ...engineProblems
    ],
    idempotent: true,
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
    description:
      'Builds the commit of the last successful deployment again, and deploys it. Of git applications only.',
    problems: [problems.imageSourceRebuild, problems.noCommit, ...beginning],
    idempotent: true,
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
    description: 'Builds an image of the source as it is now and deploys nothing.',
    problems: beginning,
    idempotent: true,
    access: allow.token('deploy', { project: inApplication }),
    schema: { response: { 202: deployment } },
    audit: { action: 'build_application', resource: 'application', id: applicationParam },
    handler: async ({ params, caller, idempotencyKey }, { service }) =>
      await service.build(params.applicationId, triggerOf(caller), idempotencyKey)
  })
  route.list({
    url: '/api/deployments',
    group: 'Platform',
    operationId: 'GetGlobalDeployments',
    summary: 'Get All Deployments',
    description:
      'Deployments of all projects that the caller sees, the newest first. All filters must match.',
    problems: [problems.badFilter, problems.unseen],
    access: allow.token('read', { project: 'filtered' }),
    query: globalQuery,
    page: pagedList,
    items: globalDeployment,
    handler: async (request, { service }) =>
      await service.listAll(readFilter(request.query), request.page, request)
  })
  deployHookRoutes(route)
}
