import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { databaseUrl, databaseGroup as group, inDatabase } from '../places.js'
import { problems } from '../problems.js'
import { restoreProblems } from './restore-problems.js'
import { databaseRestore, databaseRestoreBody, restoreOf } from './schemas.js'

export function databaseRestoreRoutes(route: RouteDeclarer<Backups>) {
  route({
    method: 'POST',
    url: `${databaseUrl}/restore`,
    group,
    operationId: 'RestoreDatabase',
    summary: 'Restore Database',
    description:
      'Replaces what is in the database by a backup, in the background. All of the file is read and proven before anything is touched. A database that is stopped is started for it, and stopped again. With `from_other` it may be a backup of another database of the project that has the same engine.',
    problems: [...restoreProblems, problems.backupUnknown, problems.backupOfOther],
    idempotent: true,
    access: allow.session({ project: inDatabase }),
    schema: { body: databaseRestoreBody, response: { 202: statusResponse } },
    audit: { action: 'restore_database', resource: 'database', id: { param: 'databaseId' } },
    handler: async ({ project, params, body }, { restores }) => {
      await restores.begin(project, {
        kind: 'database',
        resourceId: params.databaseId,
        backupId: body.backup_id,
        isFromOther: body.from_other === true
      })
      return reply(202, { status: 'restoring' })
    }
  })
  route.list({
    url: `${databaseUrl}/restores`,
    group,
    operationId: 'ListDatabaseRestores',
    summary: 'Get Restores',
    description: 'Restores into the database, those that failed too, the newest first.',
    access: allow.token('read', { project: inDatabase }),
    items: databaseRestore,
    page: pagedList,
    handler: async ({ params, page }, { restores }) => {
      const { rows, total } = await restores.list('database', params.databaseId, page)
      return { rows: rows.map(restoreOf), total }
    }
  })
}
