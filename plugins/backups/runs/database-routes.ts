import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { databaseUrl, databaseGroup as group, inDatabase } from '../places.js'
import { problems } from '../problems.js'
import { byHand } from './backup-service.js'
import { backupParams, databaseBackup, databaseBackupOf } from './schemas.js'

const url = `${databaseUrl}/backups` as const
const oneUrl = `${url}/:backupId` as const

export function databaseBackupRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListDatabaseBackups',
    summary: 'Get Backups',
    description: 'Backups of the database, those that failed too, the newest first.',
    access: allow.token('read', { project: inDatabase }),
    items: databaseBackup,
    page: pagedList,
    handler: async ({ params, page }, { backups }) => {
      const { rows, total } = await backups.list('database', params.databaseId, page)
      return { rows: rows.map(databaseBackupOf), total }
    }
  })
  route({
    method: 'POST',
    url,
    group,
    operationId: 'BackupDatabase',
    summary: 'Backup Database',
    description:
      'Makes a backup of all that is in it, in the background, which is kept on this machine, or in the bucket of the platform where one is enabled (`PUT /api/backups/remote`). The newest 7 (`DATABASE_BACKUP_RETAIN_COUNT`) of these are kept.',
    problems: [
      problems.resourceGone,
      problems.sourceOff,
      problems.busy,
      problems.restoreBusy,
      problems.refused
    ],
    idempotent: true,
    access: allow.token('write', { project: inDatabase }),
    schema: { response: { 202: statusResponse } },
    audit: { action: 'backup_database', resource: 'database', id: { param: 'databaseId' } },
    handler: async ({ project, params }, { backups }) => {
      await backups.begin('database', params.databaseId, project, byHand)
      return reply(202, { status: 'running' })
    }
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteDatabaseBackup',
    summary: 'Delete Database Backup',
    description:
      'With its file, wherever that is; a destination that is away is asked again. Refused while it is used.',
    problems: [problems.notFound, problems.inUse],
    access: allow.session({ project: inDatabase }),
    schema: { params: backupParams, response: { 200: statusResponse } },
    audit: { action: 'delete_database_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { backups, deletions }) => {
      const { id } = await backups.find(project, 'database', params.databaseId, params.backupId)
      await deletions.begin(id)
      return { status: 'deleted' }
    }
  })
  route({
    method: 'POST',
    url: `${oneUrl}/check`,
    group,
    operationId: 'CheckDatabaseBackup',
    summary: 'Check Database Backup',
    description:
      'Restores the backup into a throwaway copy and asks that, in the background: `proof` of the backup says what came of it. Nothing else is touched.',
    problems: [problems.notFound, problems.notSucceeded, problems.inUse],
    idempotent: true,
    access: allow.token('write', { project: inDatabase }),
    schema: { params: backupParams, response: { 202: statusResponse } },
    audit: { action: 'check_database_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { backups, drills }) => {
      await drills.begin(await backups.find(project, 'database', params.databaseId, params.backupId))
      return reply(202, { status: 'checking' })
    }
  })
}
