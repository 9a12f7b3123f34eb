import { containerLog, logHistoryPage, logHistoryQuery, logSession } from 'busbar/api/logs'
import { allow, pageOf, type RouteDeclarer } from 'busbar/sdk'
import { inDatabase } from '../api.js'
import type { Databases } from '../databases.js'
import { onOne, problems } from '../problems.js'

const group = 'Database Logs'
const one = '/api/projects/:projectId/databases/:databaseId'
const access = allow.token('read', { project: inDatabase })

/** What the containers of a database have written; the plugin of logs keeps it. */
export function logRoutes(route: RouteDeclarer<Databases>) {
  route.list({
    url: `${one}/logs/history`,
    group,
    operationId: 'ListDatabaseLogs',
    summary: 'Get Logs',
    description:
      'What the containers of the database have written, the latest first, as far as it is kept. All filters must match, and what is malformed narrows nothing. With `cursor` lines that come or go meanwhile neither repeat nor leave out any; `X-Next-Cursor` is where to go on.',
    problems: [
      ...onOne,
      problems.logsOff,
      {
        status: 503,
        code: 'E_LOGS_BUSY',
        message: 'others read logs, and it was not the turn of this request in time'
      }
    ],
    access,
    items: containerLog,
    query: logHistoryQuery,
    page: logHistoryPage,
    cursor: true,
    handler: async ({ project, params, query, page, caller, signal }, { databases, logs }) => {
      await databases.row(project, params.databaseId)
      return await logs().history(params.databaseId, query, page, { asker: caller.user.id, signal })
    }
  })
  route.list({
    url: `${one}/logs/sessions`,
    group,
    operationId: 'ListDatabaseLogSessions',
    summary: 'Get Sessions',
    description:
      'The containers of the database of which lines are kept, at most 50, those first that have written last.',
    problems: [...onOne, problems.logsOff],
    access,
    items: logSession,
    handler: async ({ project, params, page }, { databases, logs }) => {
      await databases.row(project, params.databaseId)
      return pageOf(page, await logs().sessions(params.databaseId))
    }
  })
}
