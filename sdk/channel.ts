import type { TSchema } from '@sinclair/typebox'
import type { Access } from './access.js'
import type { SignedInCaller } from './caller.js'

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

export interface ChannelContext {
  /** The id in the channel's name, or undefined for a channel without one. */
  readonly id: string | undefined
  readonly signal: AbortSignal
  publish(event: string, data: unknown): void
}

export type ChannelDeclarer<Self> = <const N extends string>(spec: ChannelSpec<N, Self>) => void

/** A duplex WebSocket of a plugin's own, under `/api/ws/`. */
export interface SocketSpec<U extends string, Self> {
  readonly url: U
  readonly access: Access
  readonly summary: string
  /** Runs before the upgrade, within 10 s; throw a `Problem` to refuse it. */
  readonly accept?: (request: SocketRequest, self: Self) => void | Promise<void>
  /** The socket is closed when it ends: with 1000, or with 1011 when it throws. */
  readonly handler: (socket: DuplexSocket, request: SocketRequest, self: Self) => Promise<void>
}
export interface SocketRequest {
  readonly params: Readonly<Record<string, string>>
  readonly caller: SignedInCaller
  readonly ip: string
}
export interface DuplexSocket {
  /** Frames from the client, in order; ends when the socket closes. */
  readonly messages: AsyncIterable<string | Buffer>
  /** Resolves when the frame may be followed by another (backpressure); rejects once the socket is closed. */
  send(data: string | Buffer): Promise<void>
  close(code?: number, reason?: string): void
  readonly signal: AbortSignal
}
export type SocketDeclarer<Self> = <const U extends string>(spec: SocketSpec<U, Self>) => void
