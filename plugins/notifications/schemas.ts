import {
  described,
  list,
  named,
  notificationSeverities,
  nullable,
  object,
  oneOf,
  pagingQuery,
  type Static,
  Type,
  timestamp,
  uuid
} from 'busbar/sdk'

export const notification = named(
  'Notification',
  object({
    id: described(uuid(), 'What the notification is called in paths.'),
    user_id: described(uuid(), 'Whose inbox it is in: that of the caller.'),
    type: described(
      Type.String(),
      'What has happened, for programs: `deployment.failed`. `GET /api/notification-events` lists the types.'
    ),
    title: described(Type.String(), 'What has happened, in one line of plain text.'),
    body: described(Type.String(), 'More about it, as lines of plain text; empty where there is no more.'),
    link: described(nullable(Type.String()), 'The path of the page that shows it; null where none does.'),
    read: described(Type.Boolean(), 'Whether it was marked as read.'),
    created_at: described(timestamp(), 'When it happened.')
  }),
  { description: 'Something that a user is told of.' }
)
export type Notification = Static<typeof notification>

const unread = described(
  Type.Integer(),
  'How many notifications the caller has not marked as read, on all pages.'
)
export const page = named(
  'NotificationPage',
  object({
    items: described(list(notification), 'The notifications of this page, the newest first.'),
    unread
  }),
  { description: 'A page of an inbox.' }
)
export const listQuery = object(pagingQuery)
export const unreadCount = named('UnreadNotifications', object({ unread }), {
  description: 'How much of an inbox is new.'
})
export const notificationParams = {
  notificationId: described(uuid(), 'The `id` of a notification in your own inbox.')
}

export const kind = named(
  'NotificationEvent',
  object({
    type: described(Type.String(), 'What notifications of it have as `type`.'),
    label: described(Type.String(), 'What it is called, in a few words.'),
    description: described(Type.String(), 'When it comes.'),
    severity: described(
      oneOf(notificationSeverities),
      'How bad it is: `ok` for good news, `warn` for what needs a look, `error` for a failure.'
    ),
    group: described(Type.String(), 'What it is listed under.')
  }),
  { description: 'A type of notifications, as a plugin that is on declares it.' }
)
