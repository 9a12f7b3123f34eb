import { inApplication } from 'busbar/api/applications'
import { allow, pagedList, type RouteDeclarer, sse } from 'busbar/sdk'
import { problems } from './problems.js'
import { readFilter } from './read/trace-filter.js'
import { streamTraces } from './read/trace-stream.js'
import type { Requests } from './requests.js'
import { filterQuery, requestLog, requestSummary, summaryQuery } from './schemas.js'

const ofApplication = '/api/projects/:projectId/applications/:applicationId/requests'
const applications = 'Application Metrics & Logs'
const admins = 'Requests (Admin)'
const access = allow.token('read', { project: inApplication })
/** They tell of every project, so a token that is pinned to some cannot read any of it. */
const ofAdmin = allow.token('read', { role: 'admin', project: 'never-pinned' })
const heartbeatMs = 30_000
const filterProblems = [problems.badStatus, problems.badApplication]
const pages =
  'With `cursor` requests that come meanwhile neither repeat nor leave out any. Of more than 100 000 the total is left out.'
const streams =
  'as server-sent events. Each `data:` is a request as JSON, as the history has it; a comment comes at once and every 30 seconds. A reader that comes again with the `id` of the last event as `Last-Event-ID` gets what has come since, as far as it is kept.'

export function routes(route: RouteDeclarer<Requests>): void {
  route.list({
    url: ofApplication,
    group: applications,
    operationId: 'ListRequestLogs',
    summary: 'Get Request Logs',
    description: `The requests that proxies have answered for the application, the newest first. ${pages}`,
    problems: [problems.badCursor, problems.tooSlow],
    access,
    items: requestLog,
    page: pagedList,
    cursor: true,
    handler: async ({ params: { applicationId }, page, caller, signal }, { history }) =>
      await history.page({ applicationId }, page, { asker: caller.user.id, signal })
  })
  route({
    method: 'GET',
    url: `${ofApplication}/stream`,
    group: applications,
    operationId: 'StreamRequestLogs',
    summary: 'Stream Request Logs',
    description: `The requests that proxies answer for the application from now on, ${streams} It ends when the application is deleted.`,
    produces: 'text/event-stream',
    access,
    handler: async ({ params: { applicationId }, headers, signal }, { feed, feedStore: store }) =>
      sse(await streamTraces(applicationId, headers['last-event-id'], { feed, store }, signal), {
        heartbeatMs
      })
  })
  route.list({
    url: '/api/requests',
    group: admins,
    operationId: 'ListAllRequestLogs',
    summary: 'Get Logs',
    description: `The requests that proxies have answered, for applications and for nobody, the newest first. All filters must match. ${pages}`,
    problems: [...filterProblems, problems.badCursor, problems.tooSlow],
    access: ofAdmin,
    items: requestLog,
    query: filterQuery,
    page: pagedList,
    cursor: true,
    handler: async ({ query, page, caller, signal }, { history }) =>
      await history.page(readFilter(query), page, { asker: caller.user.id, signal })
  })
  route({
    method: 'GET',
    url: '/api/requests/stream',
    group: admins,
    operationId: 'StreamAllRequestLogs',
    summary: 'Stream Logs',
    description: `The requests that proxies answer from now on, ${streams}`,
    produces: 'text/event-stream',
    access: ofAdmin,
    handler: async ({ headers, signal }, { feed, feedStore: store }) =>
      sse(await streamTraces(null, headers['last-event-id'], { feed, store }, signal), { heartbeatMs })
  })
  route({
    method: 'GET',
    url: '/api/requests/summary',
    group: admins,
    operationId: 'GetAllRequestsSummary',
    summary: 'Get Summary',
    description:
      'What the requests have come to that match all filters: how many, with which answers, how fast, and how many in each minute.',
    problems: [...filterProblems, problems.tooSlow],
    access: ofAdmin,
    schema: { query: summaryQuery, response: { 200: requestSummary } },
    handler: async ({ query, caller, signal }, { history }) =>
      await history.summary(readFilter(query), { asker: caller.user.id, signal })
  })
}
