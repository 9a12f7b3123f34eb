import type { Clock } from 'busbar/sdk'
import { repeat } from '../../core/clock/repeat.js'

export interface TestClock extends Clock {
  /**
   * Moves the time on, and with it what sleeps on this clock, in order. Resolves when the runs of
   * `every` that came due have ended, or wait on the clock themselves.
   */
  advance(ms: number): Promise<void>
  /** Sets the time that `now` tells so much later, or earlier, as somebody does who sets the clock of a machine. Nothing wakes up by that. */
  set(byMs: number): void
}

interface Sleeper {
  readonly due: number
  wake(): void
}

/** How long, in real time, `advance` waits for a run that does not end. */
const patienceMs = 2000

/** A clock that stands still until it is moved. */
export function testClock(start: Date | string | number = '2026-01-01T00:00:00.000Z'): TestClock {
  let time = new Date(start).getTime()
  let setBy = 0
  const sleepers = new Set<Sleeper>()
  let running = 0
  let sleeps = 0

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      const stop = () => {
        sleepers.delete(sleeper)
        reject(signal?.reason)
      }
      const sleeper: Sleeper = {
        due: time + Math.max(0, ms),
        wake() {
          signal?.removeEventListener('abort', stop)
          resolve()
        }
      }
      sleeps++
      sleepers.add(sleeper)
      signal?.addEventListener('abort', stop, { once: true })
    })
  }

  async function settle(): Promise<void> {
    const sleepsBefore = sleeps
    const patience = performance.now() + patienceMs
    do {
      await new Promise(resolve => setImmediate(resolve))
      await new Promise(resolve => setImmediate(resolve))
    } while (running > 0 && sleeps === sleepsBefore && performance.now() < patience)
  }

  return {
    now: () => new Date(time + setBy),
    elapsed: () => time,
    sleep,
    every(ms, run) {
      const counted = async () => {
        running++
        try {
          await run()
        } finally {
          running--
        }
      }
      return repeat({ elapsed: () => time, sleep }, ms, counted, error => {
        void Promise.reject(error)
      })
    },
    async advance(ms) {
      const target = time + ms
      await settle()
      for (;;) {
        const next = [...sleepers].reduce<Sleeper | undefined>(
          (a, b) => (a !== undefined && a.due <= b.due ? a : b),
          undefined
        )
        if (next === undefined || next.due > target) break
        time = Math.max(time, next.due)
        sleepers.delete(next)
        next.wake()
        await settle()
      }
      time = target
    },
    set(byMs) {
      setBy += byMs
    }
  }
}
