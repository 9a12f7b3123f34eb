import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { databaseGroup as group } from '../places.js'
import { problems } from '../problems.js'
import { backupParams, orphanedBackup, orphanedBackupOf } from '../runs/schemas.js'
import { restoreProblems } from './restore-problems.js'
import { recreatedDatabase, recreatedOf } from './schemas.js'

const url = '/api/projects/:projectId/orphaned-backups'
const oneUrl = '/api/projects/:projectId/orphaned-backups/:backupId'
const inProject = { param: 'projectId' } as const

export function orphanRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListProjectOrphanedDatabaseBackups',
    summary: 'Get Orphaned Database Backups',
    description:
      'Backups of databases that were deleted, the newest first. They are kept for 90 days (`orphaned_backup_retention_days`).',
    access: allow.token('read', { project: inProject }),
    items: orphanedBackup,
    page: pagedList,
    handler: async ({ project, page }, { orphans }) => {
      const { rows, total } = await orphans.list(project, 'database', page)
      return { rows: rows.map(orphanedBackupOf), total }
    }
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteOrphanedDatabaseBackup',
    summary: 'Delete Orphaned Database Backup',
    description: 'With its file. Refused while it is used.',
    problems: [problems.notFound, problems.inUse],
    access: allow.session({ project: inProject }),
    schema: { params: backupParams, response: { 200: statusResponse } },
    audit: { action: 'delete_orphaned_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { orphans, deletions }) => {
      const { id } = await orphans.find(project, 'database', params.backupId)
      await deletions.begin(id)
      return { status: 'deleted' }
    }
  })
  route({
    method: 'POST',
    url: `${oneUrl}/restore`,
    group,
    operationId: 'RestoreDatabaseFromTombstone',
    summary: 'Restore Database From Tombstone',
    description:
      'Makes the database again, under its name and with its credentials, and restores the backup into it, in the background: `GET …/databases/{databaseId}/restores` of the new one says how that goes.',
    problems: [...restoreProblems, problems.notRecreated, problems.nameTaken],
    idempotent: true,
    timeoutMs: 60_000,
    access: allow.session({ project: inProject }),
    schema: { params: backupParams, response: { 202: recreatedDatabase } },
    audit: { action: 'restore_orphaned_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { restores }) =>
      reply(202, recreatedOf(await restores.recreate(project, params.backupId)))
  })
}
