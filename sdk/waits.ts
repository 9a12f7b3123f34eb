import type { Clock } from './kernel.js'

/** Waits for `ms`, but not beyond the abort; never rejects. */
export const pause = async (clock: Pick<Clock, 'sleep'>, ms: number, signal: AbortSignal): Promise<void> =>
  await clock.sleep(ms, signal).catch(() => {})

/**
 * Settles as `Promise.all` does, but only when all have settled: whatever fails, none of it still runs then. Of
 * several failures the first in the list is thrown.
 */
export async function settleAll<const T extends readonly unknown[]>(
  work: T
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(work)
  return await Promise.all(work)
}

/** Pauses that double, from `firstMs` up to `longestMs`, until `reset`. */
export class Backoff {
  #nextMs: number

  constructor(
    private readonly clock: Pick<Clock, 'sleep'>,
    private readonly range: { readonly firstMs: number; readonly longestMs: number }
  ) {
    this.#nextMs = range.firstMs
  }

  /** Whether nothing has failed since the beginning, or since the reset. */
  get isFresh(): boolean {
    return this.#nextMs === this.range.firstMs
  }

  reset(): void {
    this.#nextMs = this.range.firstMs
  }

  /** Not beyond the abort; never rejects. */
  async pause(signal: AbortSignal): Promise<void> {
    const ms = this.#nextMs
    this.#nextMs = Math.min(ms * 2, this.range.longestMs)
    await pause(this.clock, ms, signal)
  }
}

/**
 * Runs `work` at once and then again and again, with `everyMs` between its end and its next beginning, until `signal`
 * aborts. What it throws goes to `onError`, unless the abort made it, and the next run comes all the same.
 */
export async function runRepeatedly(
  work: () => void | Promise<void>,
  {
    everyMs,
    clock,
    signal,
    onError
  }: {
    readonly everyMs: number
    readonly clock: Pick<Clock, 'sleep'>
    readonly signal: AbortSignal
    readonly onError: (error: unknown) => void
  }
): Promise<void> {
  while (!signal.aborted) {
    try {
      await work()
    } catch (error) {
      if (!signal.aborted) onError(error)
    }
    await pause(clock, everyMs, signal)
  }
}
