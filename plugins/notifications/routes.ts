import { allow, pageOf, type RouteDeclarer, readPage, reply, sse, statusResponse } from 'busbar/sdk'
import type { Notifications } from './notifications.js'
import { problems } from './problems.js'
import { kind, listQuery, notification, notificationParams, page, unreadCount } from './schemas.js'

const group = 'Notifications'
const all = '/api/notifications'
const one = `${all}/:notificationId` as const
const reading = allow.token('read', { project: 'filtered' })
const writing = allow.token('write', { project: 'filtered' })
const heartbeatMs = 30_000

/** Each user has an inbox, which nobody else reads; of it, what they have access to now is shown. */
export function routes(route: RouteDeclarer<Notifications>): void {
  route({
    method: 'GET',
    url: all,
    group,
    operationId: 'ListNotifications',
    summary: 'Get Notifications',
    description:
      'What the caller was told, the newest first. What it tells of a project is shown while they have access to that, and what is for administrators while they are one; a token that is pinned sees what is in its projects alone.',
    access: reading,
    schema: { query: listQuery, response: { 200: page } },
    handler: async ({ reach, query }, { inbox }) => await inbox.list(reach, readPage(query))
  })
  route({
    method: 'GET',
    url: `${all}/unread-count`,
    group,
    operationId: 'UnreadNotificationCount',
    summary: 'Get Unread Count',
    description: 'How many notifications of the list are not marked as read.',
    access: reading,
    schema: { response: { 200: unreadCount } },
    handler: async ({ reach }, { inbox }) => await inbox.unread(reach)
  })
  route({
    method: 'GET',
    url: `${all}/stream`,
    group,
    operationId: 'StreamNotifications',
    summary: 'Stream Notifications',
    description:
      'What comes into the inbox from now on, as server-sent events. Each `data:` is a notification as JSON; a comment comes at once and every 30 seconds. A reader who comes again with the `id` of the last one as `Last-Event-ID` gets what has come since.',
    access: reading,
    produces: 'text/event-stream',
    handler: async ({ caller, reach, requireProject, headers, signal }, { inbox }) =>
      sse(
        await inbox.stream(
          { userId: caller.user.id, reach, requireProject },
          headers['last-event-id'],
          signal
        ),
        { heartbeatMs }
      )
  })
  route({
    method: 'POST',
    url: `${one}/read`,
    group,
    operationId: 'MarkNotificationRead',
    summary: 'Mark Notification Read',
    description: 'Nothing changes when it was read before.',
    problems: [problems.notFound],
    access: writing,
    schema: { params: notificationParams, response: { 200: notification } },
    handler: async ({ reach, params }, { inbox }) => await inbox.markRead(reach, params.notificationId)
  })
  route({
    method: 'POST',
    url: `${all}/read-all`,
    group,
    operationId: 'MarkAllNotificationsRead',
    summary: 'Mark Notifications Read',
    description: 'Marks all that the list shows to the caller as read.',
    access: writing,
    schema: { response: { 204: null } },
    handler: async ({ reach }, { inbox }) => {
      await inbox.markAllRead(reach)
      return reply(204, null)
    }
  })
  route({
    method: 'DELETE',
    url: one,
    group,
    operationId: 'DeleteNotification',
    summary: 'Delete Notification',
    description: 'Takes a notification out of the own inbox. Others who were told keep theirs.',
    problems: [problems.notFound],
    access: writing,
    schema: { params: notificationParams, response: { 200: statusResponse } },
    handler: async ({ reach, params }, { inbox }) => await inbox.remove(reach, params.notificationId)
  })
  route.list({
    url: '/api/notification-events',
    group: 'Notification Channels (Admin)',
    operationId: 'ListNotificationEvents',
    summary: 'Get Events',
    description: 'What the plugins that are on tell users of, by group.',
    access: allow.token('read', { role: 'admin', project: 'none' }),
    items: kind,
    handler: ({ page }, { kinds }) => pageOf(page, kinds.list())
  })
}
