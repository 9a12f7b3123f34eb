import type {
  Access,
  AlertPreference,
  Audit,
  ChannelContext,
  CurrentState,
  DuplexSocket,
  ExtensionPoint,
  JobContext,
  MissedRuns,
  NotificationAudience,
  NotificationKind,
  ProblemKind,
  RaisedNotification,
  ResourceTeardown,
  RouteRequest,
  RouteSchema,
  ScheduleContext,
  SocketRequest,
  TSchema,
  Tx
} from 'busbar/sdk'
import type { DescribedRoute } from './openapi.js'

/**
 * What a plugin has declared, as frozen data of the kernel's own. Guards, OpenAPI, audit and the access
 * matrix read these records only; the objects a plugin handed in are never looked at again.
 */
export interface RouteRecord extends DescribedRoute {
  readonly bodyLimit: number
  readonly timeoutMs: number
  readonly audit: Audit | undefined
  readonly precondition:
    | ((request: Omit<RouteRequest, 'body' | 'query'>, self: object) => void | Promise<void>)
    | undefined
  readonly limitKey:
    | ((
        request: Omit<RouteRequest, 'body' | 'query'>,
        self: object
      ) => string | undefined | Promise<string | undefined>)
    | undefined
  readonly version:
    | ((request: RouteRequest, self: object) => string | undefined | Promise<string | undefined>)
    | undefined
  readonly handler: (request: RouteRequest, self: object) => unknown
}

export interface ChannelRecord {
  readonly plugin: string
  /** `build-logs:{deploymentId}` */
  readonly name: string
  /** `build-logs:` for a channel with an id, the whole name otherwise. */
  readonly prefix: string
  readonly param: string | null
  readonly access: Access
  readonly events: Readonly<Record<string, TSchema>>
  readonly endsWith: string | undefined
  readonly summary: string
  readonly description: string | undefined
  readonly source: ((context: ChannelContext, self: object) => void | Promise<void>) | undefined
  readonly current: CurrentState<object> | undefined
}

export interface SocketRecord {
  readonly plugin: string
  readonly url: string
  readonly params: readonly string[]
  readonly access: Access
  readonly operationId: string | undefined
  readonly group: string
  readonly summary: string
  readonly description: string | undefined
  readonly problems: readonly ProblemKind[]
  readonly schema: Pick<RouteSchema, 'params'>
  readonly accept: ((request: SocketRequest, self: object) => void | Promise<void>) | undefined
  readonly handler: (socket: DuplexSocket, request: SocketRequest, self: object) => Promise<void>
}

export interface JobRecord {
  readonly name: string
  readonly lane: 'short' | 'long'
  readonly attempts: number
  readonly timeoutMs: number
  readonly waitsForTenants?: boolean
  readonly run: (payload: unknown, context: JobContext, self: object) => Promise<void>
}

export interface SingletonRecord {
  readonly name: string
  readonly run: (context: { readonly signal: AbortSignal }, self: object) => Promise<void>
}

export interface ScheduleRecord {
  readonly name: string
  readonly cron: string
  readonly timeZone: string
  readonly missed: MissedRuns
  readonly lane: 'short' | 'long'
  readonly attempts: number
  readonly timeoutMs: number
  readonly run: (context: ScheduleContext, self: object) => Promise<void>
}

export interface EventRecord {
  readonly eventId: string
  readonly handle: (
    data: unknown,
    self: object,
    context: { readonly signal: AbortSignal }
  ) => void | Promise<void>
}

export type NotificationHandler = (
  raised: RaisedNotification,
  self: object,
  context: { readonly signal: AbortSignal }
) => void | Promise<void>

/** That an event of the plugin is a notification. */
export interface NotificationRecord extends NotificationKind {
  readonly plugin: string
  readonly eventId: string
  /** Values by field; of a list, one of them. */
  readonly when: Readonly<Record<string, unknown>>
  readonly audience: NotificationAudience<Readonly<Record<string, string>>>
  readonly preference: AlertPreference | null
  readonly title: string
  readonly body: string
  readonly link: string | null
}

export interface ResourceRecord {
  readonly plugin: string
  readonly kind: string
  /** Without its schema. */
  readonly table: string
  /** Column by kind. */
  readonly parents: Readonly<Record<string, string>>
  readonly name: string | undefined
  readonly removal: RemovalRecord | undefined
}

interface RemovalRecord {
  readonly teardown: ExtensionPoint<ResourceTeardown> | undefined
  readonly turnsBy: string | undefined
  readonly run:
    | ((row: object, context: { readonly signal: AbortSignal }, self: object) => Promise<void>)
    | undefined
  readonly deleted: ((row: object, tx: Tx, self: object) => Promise<void>) | undefined
}

export interface PluginRecords {
  readonly resources: readonly ResourceRecord[]
  readonly routes: readonly RouteRecord[]
  readonly channels: readonly ChannelRecord[]
  readonly sockets: readonly SocketRecord[]
  readonly jobs: readonly JobRecord[]
  readonly singletons: readonly SingletonRecord[]
  readonly schedules: readonly ScheduleRecord[]
  readonly events: readonly EventRecord[]
  readonly notifications: readonly NotificationRecord[]
  /** Who listens to the notifications of all plugins. */
  readonly notificationHandlers: readonly NotificationHandler[]
}
