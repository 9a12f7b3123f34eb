import {
  allow,
  described,
  maybe,
  pagedList,
  type RouteDeclarer,
  reply,
  statusResponse,
  uuid
} from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { volumeGroup as group } from '../places.js'
import { problems } from '../problems.js'
import { backupParams, orphanedVolumeBackup, orphanedVolumeBackupOf } from '../runs/schemas.js'
import { restoreProblems } from './restore-problems.js'
import { orphanedVolumeRestoreBody } from './schemas.js'

const url = '/api/projects/:projectId/orphaned-volume-backups'
const oneUrl = '/api/projects/:projectId/orphaned-volume-backups/:backupId'
const inProject = { param: 'projectId' } as const

export function orphanedVolumeRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListProjectOrphanedVolumeBackups',
    summary: 'Get Orphaned Volume Backups',
    description:
      'Backups of volumes that were deleted while their application is there, the newest first. They are kept for 90 days (`orphaned_backup_retention_days`), until the application is deleted, or until it has a volume of that name again, whose backups they are then.',
    access: allow.token('read', { project: inProject }),
    query: {
      application_id: described(maybe(uuid()), 'Only those of volumes of the application with this `id`.')
    },
    items: orphanedVolumeBackup,
    page: pagedList,
    handler: async ({ project, page, query }, { orphans }) => {
      const application = query.application_id ?? null
      const { rows, total } = await orphans.list(project, 'volume', page, { application })
      return { rows: rows.map(orphanedVolumeBackupOf), total }
    }
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteOrphanedVolumeBackup',
    summary: 'Delete Orphaned Volume Backup',
    description: 'With its file. Refused while it is used.',
    problems: [problems.notFound, problems.inUse],
    access: allow.session({ project: inProject }),
    schema: { params: backupParams, response: { 200: statusResponse } },
    audit: { action: 'delete_orphaned_volume_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { orphans, deletions }) => {
      const { id } = await orphans.find(project, 'volume', params.backupId)
      await deletions.begin(id)
      return { status: 'deleted' }
    }
  })
  route({
    method: 'POST',
    url: `${oneUrl}/restore`,
    group,
    operationId: 'RestoreOrphanedVolumeBackup',
    summary: 'Restore Orphaned Volume Backup',
    description:
      'Replaces what is in a volume of the project by the backup, in the background, as the restore of a backup of its own does: `GET …/volumes/{volumeId}/restores` of that volume says how it goes.',
    problems: [...restoreProblems, problems.backupUnknown],
    idempotent: true,
    access: allow.session({ project: inProject }),
    schema: { params: backupParams, body: orphanedVolumeRestoreBody, response: { 202: statusResponse } },
    audit: { action: 'restore_orphaned_volume_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params, body }, { orphans, restores }) => {
      const { id } = await orphans.find(project, 'volume', params.backupId)
      await restores.begin(project, {
        kind: 'volume',
        resourceId: body.target_volume_id,
        backupId: id,
        isFromOther: true
      })
      return reply(202, { status: 'restoring' })
    }
  })
}
