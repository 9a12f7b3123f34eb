import type { ServerResponse } from 'node:http'
import type { Clock } from 'busbar/sdk'
import { setDefaultHeader } from './platform-response.js'

interface Window { used: number, readonly endsAt: number }

export interface Budget { readonly allowed: boolean, readonly limit: number, readonly remaining: number, readonly resetAt: number }

/**
 * Fixed windows counted in memory, one per key, beginning with its first request. They belong to the
 * kernel, so turning a plugin off and on gives nobody a fresh budget. Budgets are per process.
 */
export class RateLimiter {
  readonly #windows = new Map<string, Window>()
  readonly #clock: Clock
  readonly #stopSweep: () => void

  constructor (clock: Clock) {
    this.#clock = clock
    this.#stopSweep = clock.every(60_000, () => { this.#sweep() })
  }

  take (key: string, max: number, windowMs: number): Budget {
    const now = this.#clock.now().getTime()
    let window = this.#windows.get(key)
    if (window === undefined || window.endsAt <= now) {
      window = { used: 0, endsAt: now + windowMs }
      this.#windows.set(key, window)
    }
    const allowed = window.used < max
    if (allowed) window.used++
    return { allowed, limit: max, remaining: max - window.used, resetAt: window.endsAt }
  }

  /** Gives everybody a fresh budget. */
  reset (): void {
    this.#windows.clear()
  }

  close (): void {
    this.#stopSweep()
  }

  #sweep (): void {
    const now = this.#clock.now().getTime()
    for (const [key, { endsAt }] of this.#windows) if (endsAt <= now) this.#windows.delete(key)
  }
}

export function setRateHeaders (response: ServerResponse, { limit, remaining, resetAt }: Budget): void {
  setDefaultHeader(response, 'x-ratelimit-limit', String(limit))
  setDefaultHeader(response, 'x-ratelimit-remaining', String(remaining))
  setDefaultHeader(response, 'x-ratelimit-reset', String(Math.ceil(resetAt / 1000)))
}
