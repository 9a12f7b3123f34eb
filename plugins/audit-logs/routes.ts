import { allow, download, list, type RouteDeclarer, readPage, Type } from 'busbar/sdk'
import { readFilter } from './audit-filter.js'
import type { AuditLogs } from './audit-logs.js'
import { filterQuery, listQuery, page } from './schemas.js'

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
    access,
    schema: { query: listQuery, response: { 200: page } },
    handler: async ({ query }, { logs }) => await logs.list(readFilter(query), readPage(query))
  })
  route({
    method: 'GET',
    url: '/api/audit-logs/actions',
    group,
    operationId: 'ListAuditActions',
    summary: 'Get Actions',
    access,
    schema: { response: { 200: list(Type.String()) } },
    handler: async (_request, { logs }) => await logs.actions()
  })
  route({
    method: 'GET',
    url: '/api/audit-logs/export',
    group,
    operationId: 'ExportAuditLogs',
    summary: 'Export Logs',
    access,
    schema: { query: filterQuery },
    produces: 'text/csv',
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
