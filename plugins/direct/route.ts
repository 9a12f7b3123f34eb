import type { SwitchMeter } from './switch-meter.js'
import type { Upstream } from './upstream.js'

/** What a request under way must know of its application's forwarder. */
export interface Route {
  /** The only host by which the application may be asked, in lower case; undefined: any. */
  readonly ownHost: string | undefined
  /** Where new requests go now; null while the application does not run. */
  current(): Upstream | null
  readonly meter: SwitchMeter
  readonly limits: ForwardingLimits
}

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
