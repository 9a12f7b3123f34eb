import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { volumeGroup as group, inVolume, volumeUrl } from '../places.js'
import { problems } from '../problems.js'
import { backupParams, volumeBackup, volumeBackupOf } from './schemas.js'

const url = `${volumeUrl}/backups` as const
const oneUrl = `${url}/:backupId` as const

export function volumeBackupRoutes(route: RouteDeclarer<Backups>) {
  route.list({
    url,
    group,
    operationId: 'ListVolumeBackups',
    summary: 'Get Backups',
    description: 'Backups of the volume, those that failed too, the newest first.',
    access: allow.token('read', { project: inVolume }),
    items: volumeBackup,
    page: pagedList,
    handler: async ({ params, page }, { backups }) => {
      const { rows, total } = await backups.list('volume', params.volumeId, page)
      return { rows: rows.map(volumeBackupOf), total }
    }
  })
  route({
    method: 'DELETE',
    url: oneUrl,
    group,
    operationId: 'DeleteVolumeBackup',
    summary: 'Delete Volume Backup',
    description:
      'With its file, wherever that is; a destination that is away is asked again. Refused while it is used.',
    problems: [problems.notFound, problems.inUse],
    access: allow.session({ project: inVolume }),
    schema: { params: backupParams, response: { 200: statusResponse } },
    audit: { action: 'delete_volume_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { backups, deletions }) => {
      const { id } = await backups.find(project, 'volume', params.volumeId, params.backupId)
      await deletions.begin(id)
      return { status: 'deleted' }
    }
  })
  route({
    method: 'POST',
    url: `${oneUrl}/check`,
    group,
    operationId: 'CheckVolumeBackup',
    summary: 'Check Volume Backup',
    description:
      'Restores the backup into a throwaway volume and counts its files, in the background: `proof` of the backup says what came of it. Nothing else is touched.',
    problems: [problems.notFound, problems.notSucceeded, problems.inUse],
    idempotent: true,
    access: allow.token('write', { project: inVolume }),
    schema: { params: backupParams, response: { 202: statusResponse } },
    audit: { action: 'check_volume_backup', resource: 'backup', id: { param: 'backupId' } },
    handler: async ({ project, params }, { backups, drills }) => {
      await drills.begin(await backups.find(project, 'volume', params.volumeId, params.backupId))
      return reply(202, { status: 'checking' })
    }
  })
}
