import { inApplication } from 'busbar/api/applications'
import { engineProblems } from 'busbar/api/containers'
import { allow, pageOf, type RouteDeclarer, reply, type SseFrame, sse } from 'busbar/sdk'
import type { ContainerUsage } from './application/container-usage.js'
import type { HostPoint } from './host/host-reading.js'
import type { Metrics } from './metrics.js'
import { newest } from './newest.js'
import { problems } from './problems.js'
import { applicationPoint, hostPoint, projectMetrics, rangeQuery } from './schemas.js'
import { applicationUsageOf, hostUsageOf } from './shown-usage.js'

const admins = 'Metrics (Admin)'
const ofAdmin = allow.token('metrics', { role: 'admin', project: 'none' })
const application = '/api/projects/:projectId/applications/:applicationId'
const inPath = allow.token('metrics', { project: inApplication })
const heartbeatMs = 30_000
const rangeProblems = [problems.badRange, problems.badTime, problems.reversed]
const average =
  'At most 1000 points, the oldest first: a longer time is divided into parts, each with its average. The longer ago, the coarser is what was kept.'

export function routes(route: RouteDeclarer<Metrics>): void {
  route.list({
    url: '/api/metrics/host',
    group: admins,
    operationId: 'GetHostHistoricalMetrics',
    summary: 'Get Metrics',
    description: `What the machine of the platform used. ${average}`,
    problems: rangeProblems,
    access: ofAdmin,
    query: rangeQuery,
    items: hostPoint,
    handler: async ({ query, page }, { hostHistory }) => pageOf(page, await hostHistory.read(query))
  })
  route({
    method: 'GET',
    url: '/api/metrics/host/stream',
    group: admins,
    operationId: 'StreamHostMetrics',
    summary: 'Stream Host Metrics',
    description:
      'What the machine uses, once a second, as server-sent events: each `data:` is a message of the channel `metrics:host` as JSON. A reader that is slow gets the newest and none of those before.',
    produces: 'text/event-stream',
    access: ofAdmin,
    handler: ({ signal }, { host }) =>
      sse(
        frames(
          newest<HostPoint>(({ give }) => host.follow(give), signal),
          hostUsageOf
        ),
        { heartbeatMs }
      )
  })
  route({
    method: 'GET',
    url: '/api/projects/:projectId/metrics',
    group: 'Projects',
    operationId: 'GetProjectMetrics',
    summary: 'Get Metrics',
    description:
      'What each application of the project uses now. Who asks within two seconds gets the same answer; of more than 64 that run it may be minutes old.',
    problems: [problems.containersOff, ...engineProblems],
    access: allow.token('metrics', { project: { param: 'projectId' } }),
    schema: { response: { 200: projectMetrics } },
    handler: async ({ project }, { projectUsage }) => ({ ...(await projectUsage.read(project)) })
  })
  route.list({
    url: `${application}/metrics`,
    group: 'Application Metrics & Logs',
    operationId: 'GetApplicationMetrics',
    summary: 'Get Metrics',
    description: `What the application used. ${average} Each application is measured once a minute, and less often where more than 240 run.`,
    problems: rangeProblems,
    access: inPath,
    query: rangeQuery,
    items: applicationPoint,
    handler: async ({ params, query, page }, { applicationHistory }) =>
      pageOf(page, await applicationHistory.read(params.applicationId, query))
  })
  route({
    method: 'GET',
    url: `${application}/metrics/stream`,
    group: 'Application Metrics & Logs',
    operationId: 'StreamApplicationMetrics',
    summary: 'Stream Metrics',
    description:
      'What the application uses, every two seconds while it runs, as server-sent events: each `data:` is a message of the channel `metrics:app:{applicationId}` as JSON. A reader that is slow gets the newest and none of those before. It ends with the application.',
    produces: 'text/event-stream',
    access: inPath,
    handler: ({ params, signal }, { feed }) =>
      sse(
        frames(
          newest<ContainerUsage>(follower => feed.follow(params.applicationId, follower), signal),
          applicationUsageOf
        ),
        { heartbeatMs }
      )
  })
  route({
    method: 'GET',
    url: '/metrics',
    group: admins,
    operationId: 'ServeMetrics',
    summary: 'Scrape Prometheus Metrics',
    description:
      'Figures of the platform itself, in the text format of Prometheus, since this process was started. Where several processes serve, each has its own.',
    produces: 'text/plain',
    access: ofAdmin,
    handler: async (_request, { exposition }) => {
      const { text, type } = await exposition.read()
      return reply(200, text, { headers: { 'content-type': type } })
    }
  })
}

async function* frames<T>(values: AsyncIterable<T>, shown: (value: T) => object): AsyncGenerator<SseFrame> {
  for await (const value of values) yield { data: shown(value) }
}
