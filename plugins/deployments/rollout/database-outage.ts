import { Backoff, type Clock, isProblem } from 'busbar/sdk'

const retry = { firstMs: 100, longestMs: 2000 }
const outageCodes: ReadonlySet<string> = new Set([
  'E_DATABASE_UNREACHABLE',
  'E_DATABASE_BUSY',
  'E_DATABASE_LOCKED',
  'E_DATABASE_LOCK_ROOM'
])

const isOutage = (error: unknown): boolean => isProblem(error) && outageCodes.has(error.code)

/**
 * Runs what only asks or writes the database, again for as long as that does not answer: a deploy need not
 * fail because PostgreSQL was started again. What may have been done already when the answer was lost must do
 * no harm a second time. Rejects when `signal` aborts during an outage.
 */
export async function retryDuringOutage<T>(
  work: () => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal }
): Promise<T> {
  const backoff = new Backoff(clock, retry)
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isOutage(error) || signal.aborted) throw error
      await backoff.pause(signal)
      signal.throwIfAborted()
    }
  }
}
