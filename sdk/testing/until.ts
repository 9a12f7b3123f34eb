import { setTimeout as sleep } from 'node:timers/promises'
import { bounded } from '../bounded.js'

type Found<T> = Exclude<T, false | null | undefined>

/** Beyond the limit: a probe that looks for the last time on a busy machine is let end. */
const graceMs = 5_000
/** Asking the platform at most so often stays within the rate limit of a session. */
const longestPauseMs = 100

/**
 * Asks `probe` after 20 ms and then in pauses that grow to 100 ms, until it answers something else than false, null or
 * undefined, and resolves with that. Rejects after `limitMs` (30 s) with `what`: the words for what was waited for. What `probe` throws ends the wait.
 */
export async function until<T>(
  probe: () => T | Promise<T>,
  what: string,
  limitMs = 30_000
): Promise<Found<T>> {
  const end = performance.now() + limitMs
  for (let pauseMs = 20; ; pauseMs = Math.min(pauseMs * 1.1, longestPauseMs)) {
    const leftMs = end - performance.now()
    const answer = await bounded(probe, {
      ms: Math.ceil(Math.max(leftMs, 0) + graceMs),
      what: `what tells whether "${what}"`
    })
    if (answer !== false && answer !== null && answer !== undefined) return answer as Found<T>
    if (leftMs <= 0) throw new Error(`waited ${limitMs} ms in vain: ${what}`)
    await sleep(pauseMs)
  }
}
