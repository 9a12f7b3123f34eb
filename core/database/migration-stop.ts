import type { PoolClient } from 'pg'
import { pause } from '../clock/waits.js'
import { processIdOf } from './guarded-connections.js'
import type { LockWatch } from './lock-watch.js'
import { cutByWire } from './wire-cancel.js'

/** So long PostgreSQL has to end it; what waits for a program of its own is not ended by that. */
const graceMs = 2_000

/**
 * Ends the connection when the signal aborts, whatever it waits for, until the returned function is called: PostgreSQL rolls back
 * what had been begun. A statement that is only cancelled may go on, as SQL code can catch that.
 */
export function endOnAbort(client: PoolClient, locks: LockWatch, signal: AbortSignal): () => void {
  const letGo = new AbortController()
  const end = async (): Promise<void> => {
    const pid = processIdOf(client)
    const isSent = pid !== undefined && (await locks.signal(pid, 'terminate').catch(() => false))
    if (isSent) await pause(graceMs, letGo.signal)
    if (!letGo.signal.aborted) cutByWire(client)
  }
  const listener = (): void => void end()
  if (signal.aborted) listener()
  else signal.addEventListener('abort', listener, { once: true })
  return () => {
    letGo.abort()
    signal.removeEventListener('abort', listener)
  }
}
