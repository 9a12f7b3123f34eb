import { setTimeout as sleep } from 'node:timers/promises'
import { isPassing } from './failure.js'

const firstPauseMs = 1_000
const longestPauseMs = 15_000

/**
 * For requests of an upload that has begun, which the client has tried a few times within seconds: does `work` again while the store
 * is away or says that it is busy, for so long. What it refuses is told at once.
 */
export async function patiently<T>(
  { signal, awayMs }: { readonly signal: AbortSignal; readonly awayMs: number },
  work: () => Promise<T>
): Promise<T> {
  const since = performance.now()
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await work()
    } catch (error) {
      signal.throwIfAborted()
      if (!isPassing(error) || performance.now() - since + pauseMs > awayMs) throw error
      await sleep(pauseMs, undefined, { signal })
    }
  }
}
