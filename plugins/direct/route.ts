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
  /** The connection was a kept one. */
  readonly wasReused: boolean
  /** Nothing was received for too long: another try would take as long again. */
  readonly hasTimedOut: boolean
  /** Requests go to another container by now. */
  readonly hasMoved: boolean
}

/**
 * Whether a request that failed without an answer may be sent again: always to a new container when
 * nothing was sent to the old one, and once more on a new connection when a kept one was closed under it.
 */
export function mayRetry(failed: FailedAttempt): boolean {
  if (failed.attempt >= maxAttempts) return false
  if (!failed.wasConnected) return failed.hasMoved
  return failed.wasReused && !failed.hasTimedOut && !failed.hasBody && safeToRepeat.has(failed.method)
}
