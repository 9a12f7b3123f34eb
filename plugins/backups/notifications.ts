import type { NotificationDeclarer } from 'busbar/sdk'
import { backupFailed, backupRestored, drillFailed, restoreFailed } from './api.js'

const databaseLink = '/projects/{projectId}/databases/{resourceId}'
const volumeLink = '/projects/{projectId}/applications/{applicationId}'
const audience = { project: 'projectId' } as const

export function notifications(notification: NotificationDeclarer): void {
  const databases = { group: 'Databases', audience, link: databaseLink } as const
  const volumes = { group: 'Volumes', audience, link: volumeLink } as const
  notification(backupFailed, {
    ...databases,
    type: 'database.backup_failed',
    label: 'Database backup failed',
    description: 'A backup of a database has failed, or was cut off.',
    severity: 'error',
    when: { kind: 'database' },
    title: 'A backup of the database {resource} failed',
    body: '{reason}'
  })
  notification(backupFailed, {
    ...volumes,
    type: 'application.volume_backup_failed',
    label: 'Volume backup failed',
    description: 'A backup of a volume has failed, or was cut off.',
    severity: 'error',
    when: { kind: 'volume' },
    title: 'A backup of the volume {resource} failed',
    body: '{reason}'
  })
  notification(backupRestored, {
    ...databases,
    type: 'database.restored',
    label: 'Database restored',
    description: 'A backup was restored into a database.',
    severity: 'ok',
    when: { kind: 'database' },
    title: 'The database {resource} is restored',
    body: 'What is in it now is that of the backup.'
  })
  notification(backupRestored, {
    ...volumes,
    type: 'application.volume_restored',
    label: 'Volume restored',
    description: 'A backup was restored into a volume.',
    severity: 'ok',
    when: { kind: 'volume' },
    title: 'The volume {resource} is restored',
    body: 'What is in it now is that of the backup.'
  })
  notification(restoreFailed, {
    ...databases,
    type: 'database.restore_failed',
    label: 'Database restore failed',
    description: 'A backup could not be restored into a database.',
    severity: 'error',
    when: { kind: 'database' },
    title: 'The restore of the database {resource} failed',
    body: '{reason}'
  })
  notification(restoreFailed, {
    ...volumes,
    type: 'application.volume_restore_failed',
    label: 'Volume restore failed',
    description: 'A backup could not be restored into a volume.',
    severity: 'error',
    when: { kind: 'volume' },
    title: 'The restore of the volume {resource} failed',
    body: '{reason}'
  })
  notification(drillFailed, {
    ...databases,
    type: 'database.backup_check_failed',
    label: 'Database backup does not work',
    description: 'The newest backup of a database could not be restored into a throwaway copy.',
    severity: 'error',
    when: { kind: 'database' },
    title: 'The newest backup of the database {resource} does not work',
    body: '{reason}'
  })
  notification(drillFailed, {
    ...volumes,
    type: 'application.volume_backup_check_failed',
    label: 'Volume backup does not work',
    description: 'The newest backup of a volume could not be restored into a throwaway copy.',
    severity: 'error',
    when: { kind: 'volume' },
    title: 'The newest backup of the volume {resource} does not work',
    body: '{reason}'
  })
}
