import { createHash } from 'node:crypto'
import { type RouteFeature, rateLimitKeyOf } from 'busbar/api/domains'
import { networkOf } from 'busbar/sdk'
import { type BucketSize, type OwnAnswer, TokenBuckets, tooMany } from 'busbar/sdk/http1'
import type { Visit } from './visit.js'

type RateLimit = Extract<RouteFeature, { readonly type: 'rate_limit' }>

/** Some 20 MB. */
const mostBuckets = 100_000
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000 }

/** Counts the requests of routes that have a `rate_limit`. What was counted stays when a table is loaded, unless the limit itself has changed. */
export class RateLimits {
  readonly #buckets = new TokenBuckets(mostBuckets)
  /** By the id of a route. */
  readonly #limits = new Map<string, string>()

  constructor(private readonly now: () => number) {}

  /** What a request is refused with; undefined where it may pass. */
  check(routeId: string, limit: RateLimit): (visit: Visit) => OwnAnswer | undefined {
    const size = sizeOf(limit)
    const key = keyReader(limit)
    const written = JSON.stringify(limit)
    if (this.#limits.get(routeId) !== written) this.#buckets.forget(routeId)
    this.#limits.set(routeId, written)
    return visit => {
      const waitMs = this.#buckets.take(routeId, key(visit), size, this.now())
      return waitMs === 0 ? undefined : tooMany(waitMs)
    }
  }

  /** Forgets what was counted of other routes. */
  keepOnly(routeIds: ReadonlySet<string>): void {
    for (const routeId of this.#limits.keys()) {
      if (routeIds.has(routeId)) continue
      this.#limits.delete(routeId)
      this.#buckets.forget(routeId)
    }
  }
}

/** `10/m` is ten at once and one more every six seconds; `burst` is so many more at once. */
export function sizeOf({ rate, burst = 0 }: RateLimit): BucketSize {
  const [count = '', unit = ''] = rate.split('/')
  return { capacity: Number(count) + burst, perMs: Number(count) / (unitMs[unit] ?? 1000) }
}

function keyReader({ key }: RateLimit): (visit: Visit) => string {
  const by = rateLimitKeyOf(key)
  if (by?.by === 'all') return () => ''
  if (by?.by !== 'header') return ({ address }) => networkOf(address)
  const name = by.name.toLowerCase()
  return ({ address, request }) => {
    const value = request.headers[name]
    // Who leaves the header out has no budget of nobody's.
    return value === undefined ? networkOf(address) : `h${short([value].flat().join(','))}`
  }
}

/** A header may have thousands of characters, and they are kept. */
const short = (text: string): string =>
  text.length <= 64 ? text : createHash('sha256').update(text).digest('base64url')
