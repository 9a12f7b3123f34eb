import type { Clock } from 'busbar/sdk'

interface Window {
  used: number
  readonly endsAt: number
}

export interface Budget {
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly resetAt: number
}

/** Some 10 MB. A flood of addresses makes that many windows and no more. */
export const maxWindows = 50_000

/**
 * Fixed windows counted in memory, one per key, beginning with its first request. They belong to the
 * kernel, so turning a plugin off and on does not reset a budget. Budgets are per process.
 */
export class RateLimiter {
  /** In the order of their beginning. */
  readonly #windows = new Map<string, Window>()

  constructor(readonly clock: Clock) {}

  get size(): number {
    return this.#windows.size
  }

  take(key: string, max: number, windowMs: number): Budget {
    const now = this.clock.elapsed()
    let window = this.#windows.get(key)
    if (window === undefined || window.endsAt <= now) {
      this.#windows.delete(key)
      this.#makeRoom(now)
      window = { used: 0, endsAt: now + windowMs }
      this.#windows.set(key, window)
    }
    const allowed = window.used < max
    if (allowed) window.used++
    return {
      allowed,
      limit: max,
      remaining: max - window.used,
      resetAt: this.clock.now().getTime() + Math.ceil(window.endsAt - now)
    }
  }

  /** Gives everybody a fresh budget. */
  reset(): void {
    this.#windows.clear()
  }

  /** Those that have ended go; when there are too many, so do those that began first. */
  #makeRoom(now: number): void {
    for (const [key, { endsAt }] of this.#windows) {
      if (endsAt > now && this.#windows.size < maxWindows) return
      this.#windows.delete(key)
    }
  }
}
