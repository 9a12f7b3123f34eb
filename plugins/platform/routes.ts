import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Platform } from './platform.js'
import { problems } from './problems.js'
import {
  features,
  platformLogs,
  restartedService,
  serverServices,
  serviceQuery,
  stats,
  summary
} from './schemas.js'

const maintenance = 'Maintenance (Admin)'

export function routes(route: RouteDeclarer<Platform>): void {
  route({
    method: 'GET',
    url: '/api/features',
    operationId: 'GetFeatures',
    summary: 'Get Features',
    description: 'What a client may want to know of the instance before anybody has signed in.',
    group: 'Public',
    access: allow.public('the sign-in page shows the name of the instance'),
    schema: { response: { 200: features } },
    handler: async (_request, { platform }) => await platform.features()
  })
  route({
    method: 'GET',
    url: '/api/stats',
    operationId: 'GetStats',
    summary: 'Get Stats',
    description:
      'How applications, deployments and the machine are, in one answer. Members are told of their own and shared projects, and of neither machine nor instance; a pinned token of its projects.',
    group: 'Platform',
    access: allow.token('read', { project: 'filtered' }),
    schema: { response: { 200: stats } },
    handler: async ({ caller, reach }, { figures }) => await figures.stats(caller, reach)
  })
  route({
    method: 'GET',
    url: '/api/summary',
    operationId: 'GetSummary',
    summary: 'Get Summary',
    description: 'Counts over the whole instance, for monitoring. They change within five seconds.',
    group: 'Metrics (Admin)',
    access: allow.token('metrics', { role: 'admin', project: 'none' }),
    schema: { response: { 200: summary } },
    handler: async (_request, { figures }) => await figures.summary()
  })
  partRoutes(route)
}

function partRoutes(route: RouteDeclarer<Platform>): void {
  route({
    method: 'GET',
    url: '/api/server/services',
    operationId: 'GetServerServices',
    summary: 'Get Server Services',
    description:
      'What the installation consists of beside the platform itself, looked at when somebody asks.',
    group: maintenance,
    access: allow.token('read', { role: 'admin', project: 'none' }),
    schema: { response: { 200: serverServices } },
    handler: async (_request, { parts }) => await parts.services()
  })
  route({
    method: 'POST',
    url: '/api/maintenance/restart',
    operationId: 'RestartService',
    summary: 'Restart Service',
    description:
      'Ends a part of the installation and starts it anew. Which can be, the refusal of any other tells.',
    group: maintenance,
    problems: [problems.noRestart, problems.partRefused],
    access: allow.session({ role: 'admin', project: 'none' }),
    schema: { query: serviceQuery, response: { 200: restartedService } },
    idempotent: true,
    audit: { action: 'restart_service', resource: 'service' },
    handler: async ({ query }, { parts }) => await parts.restart(query.service)
  })
  route({
    method: 'GET',
    url: '/api/maintenance/logs',
    operationId: 'GetPlatformLogs',
    summary: 'Get Logs',
    description:
      'The newest lines of the log of a part of the installation. Which have one, the refusal of any other tells.',
    group: maintenance,
    problems: [problems.noLogs, problems.partRefused],
    access: allow.token('read', { role: 'admin', project: 'none' }),
    schema: { query: serviceQuery, response: { 200: platformLogs } },
    handler: async ({ query }, { parts }) => await parts.logs(query.service)
  })
}
