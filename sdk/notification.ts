import type { DomainEvent } from './event.js'

/** What users may decline to be told of, by the fields of `/api/account/alert-preferences`. */
export const alertPreferences = [
  'deploy_failures',
  'deploy_success',
  'build_failures',
  'quota_threshold'
] as const
export type AlertPreference = (typeof alertPreferences)[number]

export const notificationSeverities = ['ok', 'warn', 'error'] as const
export type NotificationSeverity = (typeof notificationSeverities)[number]

/** What notifications of one type are, as the catalogue at `/api/notification-events` tells it. */
export interface NotificationKind {
  /** `deployment.failed`: lower-case words joined by dots. One plugin declares it; of a third-party plugin it begins with `x.<id>.` */
  readonly type: string
  /** A few words: `Deployment failed`. */
  readonly label: string
  /** When it comes, in a sentence. */
  readonly description: string
  /** What it is listed under: `Deployments`. */
  readonly group: string
  readonly severity: NotificationSeverity
}

/** The fields of an event that can stand in words. */
type Field<T> = { [K in keyof T]-?: T[K] extends string | number | boolean | null ? K : never }[keyof T] &
  string
/** Those that can hold an id. */
type TextField<T> = { [K in keyof T]-?: T[K] extends string ? K : never }[keyof T] & string
type Named<M extends string> = M extends `${string}{${infer P}}${infer R}` ? P | Named<R> : never
/** The words themselves; where they name a field that the event lacks, the fields that it has, for the error. */
type Words<T, M extends string> = [Named<M>] extends [Field<T>] ? M : `{${Field<T>}}`

/**
 * Whom a notification is for, by fields of the event:
 *
 * - `{ project }` holds the id of a project: its owner, and those who are members of it when the event is emitted. Whom it is
 *   merely shared with, as every user, and admins as such get none.
 * - `{ user }` holds the id of a user. With `project`, they see it only while they have access to that.
 * - `'admins'`: every admin, as long as they are one.
 */
export type NotificationAudience<T> =
  | { readonly project: TextField<T> }
  | { readonly user: TextField<T>; readonly project?: TextField<T> }
  | 'admins'

/**
 * That an event is a notification, for whom and in which words. It is data, not code: the kernel fills it in when the event is
 * emitted, in the transaction of that, so a notification does not depend on the plugin afterwards.
 *
 * Words are plain text for people; `{field}` stands for the value of that field of the event, nothing for null. Put no secret
 * into an event.
 */
export interface NotificationSpec<T, Title extends string, Body extends string, Link extends string>
  extends NotificationKind {
  /** Only where all of these fields have that value, or one of those: `{ status: 'failed' }`. Of one event and type, the first declaration that fits counts. */
  readonly when?: { readonly [K in keyof T]?: T[K] | ReadonlyArray<T[K]> }
  readonly audience: NotificationAudience<T>
  /** Who has declined this is not told. Absent: everybody is. */
  readonly preference?: AlertPreference
  /** One line: `Deployment of {application} failed`. Filled in, 200 characters at most are kept. */
  readonly title: Title & Words<T, Title>
  /** Lines of text, 2 000 characters at most; empty unless given. */
  readonly body?: Body & Words<T, Body>
  /** A path of the dashboard, beginning with `/`; values are encoded for it. None unless given. */
  readonly link?: Link & Words<T, Link>
}

/** Declares notifications of the plugin's own events. The same type may be declared several times, with the same label, description, group and severity. */
export type NotificationDeclarer = <
  T extends object,
  const Title extends string,
  const Body extends string = '',
  const Link extends string = ''
>(
  event: DomainEvent<T>,
  spec: NotificationSpec<NoInfer<T>, Title, Body, Link>
) => void

/** Whom a notification is for; ids as the event has them. */
export type RaisedAudience =
  | { readonly kind: 'project'; readonly projectId: string }
  | { readonly kind: 'user'; readonly userId: string; readonly projectId: string | null }
  | { readonly kind: 'admins' }

/** A notification of an event that was emitted, as listeners get it (`on.notification`): to keep it, or to send it on. */
export interface RaisedNotification {
  /** A UUID, the same at each delivery and for every listener: what has this id has been dealt with. */
  readonly id: string
  readonly type: string
  readonly severity: NotificationSeverity
  readonly audience: RaisedAudience
  /** Null: nobody can decline it. */
  readonly preference: AlertPreference | null
  readonly title: string
  readonly body: string
  /** A path of the dashboard. */
  readonly link: string | null
  /** When the event was emitted. */
  readonly occurredAt: Date
}

/** The notifications that plugins declare which are on. */
export interface NotificationKinds {
  /** By group, then by type. */
  list(): readonly NotificationKind[]
}
