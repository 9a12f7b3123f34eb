import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Resolves when `condition` holds, which is asked every 20 ms. Rejects after `limitMs` (10 s) with `what`: the words
 * for what was waited for.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  limitMs = 10_000
): Promise<void> {
  const end = performance.now() + limitMs
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`waited ${limitMs} ms in vain for ${what}`)
    await sleep(20)
  }
}
