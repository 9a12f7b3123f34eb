import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from 'busbar/sdk'
import { repeat } from './repeat.js'

/** A longer timer fires at once (a signed 32-bit number of milliseconds). */
export const longestTimerMs = 2 ** 31 - 1

interface ClockOptions {
  /** What an `every` threw. Default: it becomes an unhandled rejection, which has an owner. */
  readonly onError?: (error: unknown) => void
}

/** The time of the machine. */
export function systemClock({ onError = rejectUnhandled }: ClockOptions = {}): Clock {
  return {
    now: () => new Date(),
    elapsed,
    sleep: (ms, signal) => sleep(ms, signal, true),
    // An interval alone does not keep the process alive.
    every: (ms, run) =>
      repeat({ elapsed, sleep: (wait, signal) => sleep(wait, signal, false) }, ms, run, onError)
  }
}

const elapsed = (): number => performance.now()

async function sleep(ms: number, signal: AbortSignal | undefined, isRef: boolean): Promise<void> {
  const end = performance.now() + ms
  do {
    const left = Math.max(0, Math.ceil(end - performance.now()))
    await delay(Math.min(left, longestTimerMs), undefined, { signal, ref: isRef }).catch(() => {})
    signal?.throwIfAborted()
  } while (performance.now() < end)
}

function rejectUnhandled(error: unknown): void {
  void Promise.reject(error)
}
