import { allow, pagedList, type RouteDeclarer, reply, statusResponse } from 'busbar/sdk'
import type { Backups } from '../backups.js'
import { volumeGroup as group, inVolume, volumeUrl } from '../places.js'
import { problems } from '../problems.js'
import { backupParams } from '../runs/schemas.js'
import { restoreProblems } from './restore-problems.js'
import { restoreOf, volumeRestore, volumeRestoreBody } from './schemas.js'

export function volumeRestoreRoutes(route: RouteDeclarer<Backups>) {
  route({
    method: 'POST',
    url: `${volumeUrl}/backups/:backupId/restore`,
    group,
    operationId: 'RestoreVolumeBackup',
    summary: 'Restore Volume Backup',
    description:
      'Replaces what is in the volume by the backup, in the background. All of the file is read and proven before anything is touched. The application is stopped meanwhile where it runs. With `target_volume_id` it is another volume of the project that is replaced.',
    problems: [...restoreProblems, problems.backupUnknown],
    idempotent: true,
    access: allow.session({ project: inVolume }),
    schema: { params: backupParams, body: volumeRestoreBody, response: { 202: statusResponse } },
    audit: { action: 'restore_volume', resource: 'volume', id: { param: 'volumeId' } },
    handler: async ({ project, params, body }, { backups, restores }) => {
      await backups.find(project, 'volume', params.volumeId, params.backupId)
      await restores.begin(project, {
        kind: 'volume',
        resourceId: body.target_volume_id ?? params.volumeId,
        backupId: params.backupId,
        isFromOther: true
      })
      return reply(202, { status: 'restoring' })
    }
  })
  route.list({
    url: `${volumeUrl}/restores`,
    group,
    operationId: 'ListVolumeRestores',
    summary: 'Get Restores',
    description: 'Restores into the volume, those that failed too, the newest first.',
    access: allow.token('read', { project: inVolume }),
    items: volumeRestore,
    page: pagedList,
    handler: async ({ params, page }, { restores }) => {
      const { rows, total } = await restores.list('volume', params.volumeId, page)
      return { rows: rows.map(restoreOf), total }
    }
  })
}
