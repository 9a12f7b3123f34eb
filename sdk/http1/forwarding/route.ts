import type { IncomingMessage } from 'node:http'
import type { Head } from './head.js'
import type { HeaderBag } from './header-rules.js'
import type { Refusal } from './refusal.js'
import type { SwitchMeter } from './switch-meter.js'
import type { Upstream } from './upstream.js'

/** What a request under way must know of its application's forwarder. */
export interface Route {
  /** The only host that the application may set cookies for, in lower case; undefined: any. */
  readonly ownHost: string | undefined
  /** Where new requests go now; null while the application does not run. */
  current(): Upstream | null
  readonly meter: SwitchMeter
  readonly limits: ForwardingLimits
  /** What is changed on the way; absent: nothing. */
  readonly rewrite?: Rewrite
  /** Who has asked, and how; absent: the other end of the connection, over plain HTTP. */
  readonly origin?: ForwardedOrigin
  /** It leads to the platform itself: its cookies pass, both ways. */
  readonly isPlatform?: true
}

/** Who has asked, as a proxy in front has told it that is believed. */
export interface ForwardedOrigin {
  readonly forwardedFor: string
  readonly proto: 'http' | 'https'
}

/** What a route changes of requests and answers, beyond what every forwarder does. */
export interface Rewrite {
  /** The path, with its query, that the container is asked for. */
  path(path: string): string
  /** Changes the headers for the container in place; never those that frame a message. */
  request(headers: HeaderBag): void
  /** Changes the headers of an answer in place. */
  response(headers: HeaderBag): void
}

/** An answer that no container gives. */
export interface OwnAnswer {
  readonly status: number
  /** Plain text, without a line break at its end. */
  readonly sentence: string
  readonly headers?: Readonly<Record<string, string>>
}

/** What has become of a request. */
export interface RequestOutcome {
  /** Of the answer; 101 where it became another protocol, 499 where the client went away before there was one. */
  readonly statusCode: number
  /** Bytes of the body that came of the client; null where it became another protocol. */
  readonly requestBytes: number | null
  /** Bytes of the body that went to the client, of answers of the forwarder's own too; null likewise. */
  readonly responseBytes: number | null
}

/** One request that is followed. */
export interface ObservedRequest {
  /** The container gets it as `X-Request-Id`; what the client has sent as that is dropped. */
  readonly id: string
  /** Called once: when the answer has ended, or the request has become another protocol. It answers at once and never throws. */
  ended(outcome: RequestOutcome): void
}

/** As proxies write it down: the client went away before there was an answer. */
export const clientGoneStatus = 499

/** What becomes of one request. */
export type Decision = Route | OwnAnswer | Refusal

/** Where requests go that come to one server. */
export interface Forwarding {
  /** By the head of a request, which is valid: the route that it takes, or what it is answered instead. Does not reject. */
  decide(head: Head, request: IncomingMessage): Decision | Promise<Decision>
  readonly limits: ForwardingLimits
  /** Follows each request whose head is valid; asked before `decide`. Absent: nobody does, and none gets an id. */
  observe?(head: Head, request: IncomingMessage): ObservedRequest
}

export const isRoute = (decided: Decision): decided is Route =>
  typeof decided === 'object' && 'current' in decided

/** At once where the decision is there: most are, and a turn of the event loop for each would be felt. */
export function whenDecided(decision: Decision | Promise<Decision>, act: (decided: Decision) => void): void {
  if (decision instanceof Promise) void decision.then(act)
  else act(decision)
}

/** How long things may take on the way. */
export interface ForwardingLimits {
  /** Until the container accepts the connection. */
  readonly connectTimeoutMs: number
  /** From the last byte of the request to the first byte of the answer. */
  readonly answerTimeoutMs: number
  /** How long a body that the container did not wait for may still arrive. */
  readonly lingerMs: number
  /** How long a client may take nothing of an answer that waits for it. */
  readonly readerMs: number
}
export const defaultLimits: ForwardingLimits = Object.freeze({
  connectTimeoutMs: 5000,
  answerTimeoutMs: 300_000,
  lingerMs: 30_000,
  readerMs: 300_000
})

/** How often a request that reached no container is given to another container (or connection) at most. */
const maxAttempts = 3

const safeToRepeat = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

interface FailedAttempt {
  readonly attempt: number
  readonly method: string
  readonly hasBody: boolean
  /** The connection had been made, so bytes may have arrived. */
  readonly wasConnected: boolean
  /** The connection was a kept one, so it had been made. */
  readonly wasReused: boolean
  /** Nothing was received for too long: another try would take as long again. */
  readonly hasTimedOut: boolean
  /** Requests go to another container by now. */
  readonly hasMoved: boolean
}

type UnansweredAttempt = Pick<FailedAttempt, 'attempt' | 'wasConnected' | 'hasMoved'>

/** Whether a request that failed without an answer is given to the container that has come: where none of it was sent. */
export const mayMove = ({ attempt, wasConnected, hasMoved }: UnansweredAttempt): boolean =>
  attempt < maxAttempts && !wasConnected && hasMoved

/** The same, or once more on a new connection where a kept one was closed under it. */
export function mayRetry(failed: FailedAttempt): boolean {
  const { attempt, method, hasBody, wasReused, hasTimedOut } = failed
  if (mayMove(failed)) return true
  return attempt < maxAttempts && wasReused && !hasTimedOut && !hasBody && safeToRepeat.has(method)
}
