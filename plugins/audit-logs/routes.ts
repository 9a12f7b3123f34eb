import { allow, download, pageOf, type RouteDeclarer, readPage } from 'busbar/sdk'
import { readFilter } from './audit-filter.js'
import type { AuditLogs } from './audit-logs.js'
import { problems } from './problems.js'
import { action, exportHeaders, filterQuery, listQuery, page } from './schemas.js'

const group = 'Audit Logs (Admin)'
/** The log tells of every project, so a token that is pinned to some cannot read any of it. */
const access = allow.token('read', { role: 'admin', project: 'never-pinned' })

export function routes(route: RouteDeclarer<AuditLogs>): void {
  route({
    method: 'GET',
    url: '/api/audit-logs',
    group,
    operationId: 'ListAuditLogs',
    summary: 'Get Logs',
    description: 'Who did what to which resource, the newest first. All filters must match.',
    problems: [problems.badUser, problems.badTime],
    access,
    schema: { query: listQuery, response: { 200: page } },
    handler: async ({ query }, { logs }) => {
      const { rows, total } = await logs.list(readFilter(query), readPage(query))
      return { items: [...rows], total }
    }
  })
  route.list({
    url: '/api/audit-logs/actions',
    group,
    operationId: 'ListAuditActions',
    summary: 'Get Actions',
    description: 'The actions that occur in the log, sorted, for a choice of filters.',
    access,
    items: action,
    handler: async ({ page }, { logs }) => pageOf(page, await logs.actions())
  })
  route({
    method: 'GET',
    url: '/api/audit-logs/export',
    group,
    operationId: 'ExportAuditLogs',
    summary: 'Export Logs',
    description:
      'The log as CSV, the newest first: `time,action,actor,resource_type,resource,ip`, of at most 10 000 records. Cells that a spreadsheet would take for a formula begin with an apostrophe.',
    problems: [problems.badUser, problems.badTime],
    access,
    schema: { query: filterQuery },
    produces: 'text/csv',
    responseHeaders: exportHeaders,
    handler: async ({ query }, { logs }) => {
      const { source, filename, isTruncated } = await logs.export(readFilter(query))
      return download(source, {
        type: 'text/csv; charset=utf-8',
        filename,
        headers: isTruncated ? { 'X-Truncated': 'true' } : {}
      })
    }
  })
}
