import type { NotificationDeclarer } from 'busbar/sdk'
import { applicationFailed } from './api.js'

const shared = {
  group: 'Applications',
  severity: 'error',
  audience: { project: 'projectId' },
  link: '/projects/{projectId}/applications/{applicationId}'
} as const

export function notifications(notification: NotificationDeclarer): void {
  notification(applicationFailed, {
    ...shared,
    type: 'application.crashed',
    label: 'Application crashed',
    description:
      'The container of an application has ended with an error, or for want of memory. Told at most once an hour until it is deployed again.',
    when: { status: 'error' },
    title: '{application} has crashed',
    body: 'Its container ended with an error or for want of memory. Its log says more.'
  })
  notification(applicationFailed, {
    ...shared,
    type: 'application.unhealthy',
    label: 'Application unhealthy',
    description:
      'A running application does not pass its health check any more. Told at most once an hour until it is deployed again.',
    when: { status: 'unhealthy' },
    title: '{application} is unhealthy',
    body: 'It runs, and does not pass its health check.'
  })
}
