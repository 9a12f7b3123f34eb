import { allow, type RouteDeclarer } from 'busbar/sdk'
import type { Platform } from './platform.js'
import { features, stats, summary } from './schemas.js'

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
}
