import type { TSchema } from '@sinclair/typebox'
import type { Access, ProjectRole } from './access.js'
import type { ProjectId, SignedInCaller } from './caller.js'
import type { ProblemKind } from './errors.js'
import type { ParamsOf } from './route.js'

/** The parameter in a channel name such as `build-logs:{deploymentId}`; a channel has one at most. */
export type ChannelParam<N extends string> = N extends `${string}{${infer P}}` ? P : never

/**
 * A live channel on `/api/ws`. The kernel checks `access` when a client subscribes, with the identity
 * the socket was opened with; an unknown id and a forbidden one are refused with the same words.
 */
export interface ChannelSpec<N extends string, Self> {
  readonly name: N
  readonly access: Access<NoInfer<ChannelParam<N>>>
  /**
   * The events that the channel may carry, each with the schema of its `data`: `{ log: logLine, done: Type.Null() }`. They are
   * described at `/api/asyncapi.json`. What is published is sent as it is; the test kit holds it to the schema.
   */
  readonly events: Readonly<Record<string, TSchema>>
  /** The event after which every subscriber is unsubscribed. */
  readonly endsWith?: string
  /**
   * For a channel with an id that tells how something is, and not what happens: how that is now. Live messages come at most
   * once; where some may have been lost (the database was away, the plugin was off), the kernel reads this and tells the
   * subscribers, so that nobody is left with what is no longer so. Such an event reaches all processes, and room is made for it.
   */
  readonly current?: CurrentState<Self>
  /** One line for the description of the channels and the docs. */
  readonly summary: string
  /** What a subscriber should know beyond it: when messages come, and what one that has missed some reads. In sentences. */
  readonly description?: string
  /**
   * Runs while the channel has at least one subscriber in this process, for sources that only work
   * while there are subscribers. `publish` reaches this channel's subscribers; `signal` aborts after the last.
   */
  readonly source?: (context: ChannelContext, self: Self) => void | Promise<void>
}

export interface CurrentState<Self> {
  /** The one of `events` that tells it. */
  readonly event: string
  /**
   * The data of that event by id, for these ids (500 at most, all different) in one query; who is left out is told nothing.
   * It has 30 s, and is tried again when it throws.
   */
  readonly read: (ids: readonly string[], self: Self) => Promise<ReadonlyMap<string, unknown>>
}

export interface ChannelContext {
  /** The id in the channel's name, or undefined for a channel without one. */
  readonly id: string | undefined
  readonly signal: AbortSignal
  publish(event: string, data: unknown): void
}

export type ChannelDeclarer<Self> = <const N extends string>(spec: ChannelSpec<N, Self>) => void

/**
 * A duplex WebSocket of a plugin's own, under `/api/ws/`. The kernel decides about it before the upgrade, as about a route,
 * and looks at `Origin`. It pings the client every 30 s and closes the socket when the client is dead, when the caller loses
 * their access (1008) and when the plugin is turned off (1001). A frame of more than 64 KiB closes it with 1009.
 */
export interface SocketSpec<U extends string, Self> {
  readonly url: U
  readonly access: Access<NoInfer<ParamsOf<U>>>
  /** As of a route, for the description of the API. */
  readonly operationId?: string
  readonly group?: string
  readonly summary: string
  /** Which frames are sent either way, and with what the socket is closed. In sentences. */
  readonly description?: string
  /** What `accept` refuses. */
  readonly problems?: readonly ProblemKind[]
  /** A path parameter whose name ends in `Id` is a UUID unless this says otherwise. */
  readonly params?: { readonly [K in NoInfer<ParamsOf<U>>]?: TSchema }
  /** Runs before the upgrade, within 10 s; throw a `Problem` to refuse it. */
  readonly accept?: (request: SocketRequest, self: Self) => void | Promise<void>
  /** The socket is closed when it ends: with 1000, or with 1011 when it throws. */
  readonly handler: (socket: DuplexSocket, request: SocketRequest, self: Self) => Promise<void>
}
/** `accept` and `handler` of one socket are given the same object. */
export interface SocketRequest {
  readonly params: Readonly<Record<string, string>>
  readonly caller: SignedInCaller
  /** The checked project, where the access rule names one. */
  readonly project: ProjectId | undefined
  readonly ip: string
  /**
   * For `accept`: checks a project that the plugin has found, as the guard checks one from the path, for `role` in it (without,
   * what the access rule takes). From then on the socket ends when the caller loses that.
   */
  readonly requireProject: (projectId: string, role?: ProjectRole) => Promise<ProjectId>
  /**
   * Calls `lost`, once, when the caller may no longer do what this socket was let in for, also after it has closed: for
   * what goes on without it. Returns how to stop, which has to be called.
   */
  readonly watchAccess: (lost: () => void) => () => void
}
export interface DuplexSocket {
  /**
   * Frames from the client, in order; ends when the socket closes. While they are not taken, the client is not read from, and
   * some are kept (16, and what is on its way).
   */
  readonly messages: AsyncIterable<string | Buffer>
  /** Resolves when the frame may be followed by another (backpressure); rejects once the socket is closed. */
  send(data: string | Buffer): Promise<void>
  /** Nothing more is received. */
  close(code?: number, reason?: string): void
  /** Aborts when the socket has closed. */
  readonly signal: AbortSignal
}
export type SocketDeclarer<Self> = <const U extends string>(spec: SocketSpec<U, Self>) => void
