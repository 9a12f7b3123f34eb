import { setTimeout as sleep } from 'node:timers/promises'
import { bounded } from '../bounded.js'

type Found<T> = Exclude<T, false | null | undefined>

/** Beyond the limit: a probe that looks for the last time on a busy machine is let end. */
const graceMs = 5_000

/**
 * Asks `probe` every 20 ms until it answers something else than false, null or undefined, and resolves with that.
 * Rejects after `limitMs` (10 s) with `what`: the words for what was waited for. What `probe` throws ends the wait.
 */
export async function until<T>(
  probe: () => T | Promise<T>,
  what: string,
  limitMs = 10_000
): Promise<Found<T>> {
  const end = performance.now() + limitMs
  for (;;) {
    const leftMs = end - performance.now()
    const answer = await bounded(probe, {
      ms: Math.ceil(Math.max(leftMs, 0) + graceMs),
      what: `what tells whether "${what}"`
    })
    if (answer !== false && answer !== null && answer !== undefined) return answer as Found<T>
    if (leftMs <= 0) throw new Error(`waited ${limitMs} ms in vain: ${what}`)
    await sleep(20)
  }
}
