import type { NotificationDeclarer } from 'busbar/sdk'
import { memberChanged } from './api.js'

const shared = {
  group: 'Projects',
  severity: 'ok',
  audience: { user: 'userId', project: 'projectId' },
  link: '/projects/{projectId}'
} as const

export function notifications(notification: NotificationDeclarer): void {
  notification(memberChanged, {
    ...shared,
    type: 'project.member_added',
    label: 'Added to a project',
    description: 'The user has been made a member of a project.',
    when: { before: null },
    title: 'You are a member of {project}',
    body: 'Your role in it is {role}.'
  })
  notification(memberChanged, {
    ...shared,
    type: 'project.member_role_changed',
    label: 'Role in a project changed',
    description: 'The user has got another role in a project.',
    when: { before: ['viewer', 'editor'] },
    title: 'Your role in {project} is {role} now',
    body: 'It was {before} before.'
  })
}
