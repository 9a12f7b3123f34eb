import type { NotificationDeclarer } from 'busbar/sdk'
import { platformBackupFailed } from './api.js'

export function notifications(notification: NotificationDeclarer): void {
  notification(platformBackupFailed, {
    type: 'platform.backup_failed',
    label: 'Platform backup failed',
    description: 'A backup of the platform itself has failed, or was cut off.',
    group: 'Platform',
    severity: 'error',
    audience: 'admins',
    title: 'The backup of the platform failed',
    body: '{reason}',
    link: '/settings/backups'
  })
}
