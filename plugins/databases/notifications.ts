import type { NotificationDeclarer } from 'busbar/sdk'
import { databaseFailed } from './api.js'

const shared = {
  group: 'Databases',
  severity: 'error',
  audience: { project: 'projectId' },
  link: '/projects/{projectId}/databases/{databaseId}',
  body: '{reason}'
} as const

export function notifications(notification: NotificationDeclarer): void {
  notification(databaseFailed, {
    ...shared,
    type: 'database.crashed',
    label: 'Database crashed',
    description: 'The server of a database has ended with an error. Told at most once an hour.',
    when: { kind: 'ended' },
    title: '{database} has crashed'
  })
  notification(databaseFailed, {
    ...shared,
    type: 'database.upgrade_failed',
    label: 'Database upgrade failed',
    description: 'An upgrade of a database has failed. It has its version of before, and its data.',
    when: { kind: 'upgrade' },
    title: '{database} was not upgraded'
  })
}
