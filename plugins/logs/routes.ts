import { inApplication } from 'busbar/api/applications'
import { allow, described, maybe, object, pageOf, type RouteDeclarer, sse, Type } from 'busbar/sdk'
import { containerLog, logHistoryPage, logHistoryQuery, logSession } from './api.js'
import type { Logs } from './logs.js'
import { problems } from './problems.js'

const group = 'Application Metrics & Logs'
const application = '/api/projects/:projectId/applications/:applicationId'
const access = allow.token('read', { project: inApplication })
const heartbeatMs = 30_000

const streamQuery = object({
  follow: described(
    maybe(Type.String({ examples: ['true'] })),
    '`true`: what is written from now on comes as well, by whichever container of the application.'
  )
})

export function routes(route: RouteDeclarer<Logs>) {
  route({
    method: 'GET',
    url: `${application}/logs`,
    group,
    operationId: 'StreamLogs',
    summary: 'Stream Logs',
    description:
      'What the container of the application has written, as server-sent events: each `data:` is the time and the line. It ends with an event `done`; with `follow` it goes on, across deployments too, until the reader goes or the application is deleted. Without a container there is an event `error` before `done`. A reader that comes again with the `id` of the last line it has as `Last-Event-ID` gets what was written since, each line once. A line is there about half a second after it was written.',
    problems: [problems.applicationMissing],
    produces: 'text/event-stream',
    access,
    schema: { query: streamQuery },
    handler: async ({ project, params, query, headers, signal }, { applications, archive }) => {
      const follow = query.follow === 'true'
      const after = headers['last-event-id']
      const deploymentId = await applications.runningDeployment(project, params.applicationId)
      return sse(
        archive.stream(params.applicationId, {
          deploymentId,
          after: typeof after === 'string' ? after : undefined,
          follow,
          signal
        }),
        follow ? { heartbeatMs } : {}
      )
    }
  })
  route.list({
    url: `${application}/logs/history`,
    group,
    operationId: 'ListApplicationLogs',
    summary: 'Get Logs',
    description:
      'What the containers of the application have written, the latest first, as far as it is kept. All filters must match, and what is malformed narrows nothing. With `cursor` lines that come or go meanwhile neither repeat nor leave out any. A page whose lines are longer than 1 MiB together ends early, and so does a search that takes more than some seconds, with what it has found: `X-Next-Cursor` is where to go on.',
    problems: [problems.applicationMissing, problems.busy],
    access,
    items: containerLog,
    query: logHistoryQuery,
    page: logHistoryPage,
    cursor: true,
    handler: async ({ project, params, query, page, caller, signal }, { applications, archive }) => {
      await applications.runningDeployment(project, params.applicationId)
      return await archive.history(params.applicationId, query, page, { asker: caller.user.id, signal })
    }
  })
  route.list({
    url: `${application}/logs/sessions`,
    group,
    operationId: 'ListApplicationLogSessions',
    summary: 'Get Sessions',
    description:
      'The containers of the application of which lines are kept, at most 50, those first that have written last.',
    problems: [problems.applicationMissing],
    access,
    items: logSession,
    handler: async ({ project, params, page }, { applications, archive }) => {
      await applications.runningDeployment(project, params.applicationId)
      return pageOf(page, await archive.sessions(params.applicationId))
    }
  })
}
