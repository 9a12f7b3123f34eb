import type { PoolClient } from 'pg'
import { processIdOf } from './guarded-connections.js'
import type { LockWatch } from './lock-watch.js'
import { cutByWire } from './wire-cancel.js'

/**
 * Ends the connection when the signal aborts, whatever it waits for, until the returned function is called: PostgreSQL rolls back
 * what had been begun. A statement that is only cancelled may go on, as SQL code can catch that.
 */
export function endOnAbort(client: PoolClient, locks: LockWatch, signal: AbortSignal): () => void {
  const end = async (): Promise<void> => {
    const pid = processIdOf(client)
    const isSent = pid !== undefined && (await locks.signal(pid, 'terminate').catch(() => false))
    if (!isSent) cutByWire(client)
  }
  const listener = (): void => void end()
  if (signal.aborted) listener()
  else signal.addEventListener('abort', listener, { once: true })
  return () => {
    signal.removeEventListener('abort', listener)
  }
}
