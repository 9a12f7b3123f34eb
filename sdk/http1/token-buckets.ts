import type { OwnAnswer } from './forwarding/route.js'

/** How many requests there may be: `capacity` at once, and `perMs` more each millisecond. */
export interface BucketSize {
  readonly capacity: number
  readonly perMs: number
}

interface Bucket {
  tokens: number
  at: number
}

/**
 * Token buckets by group and key. Their number is bounded: when there are too many, those go that were used longest ago, of the
 * group that makes the room necessary, or else of the largest. So a flood of keys in one group costs no other its counts.
 */
export class TokenBuckets {
  readonly #groups = new Map<string, Map<string, Bucket>>()
  #total = 0

  constructor(private readonly most: number) {}

  get total(): number {
    return this.#total
  }

  /** 0 where one was taken, otherwise the milliseconds until there is one. */
  take(group: string, key: string, { capacity, perMs }: BucketSize, now: number): number {
    const buckets = this.#groups.get(group) ?? new Map<string, Bucket>()
    this.#groups.set(group, buckets)
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      this.#makeRoom(buckets)
      bucket = { tokens: capacity, at: now }
      this.#total++
    } else {
      buckets.delete(key)
      bucket.tokens = Math.min(capacity, bucket.tokens + (now - bucket.at) * perMs)
      bucket.at = now
    }
    // Last in the order: used most recently.
    buckets.set(key, bucket)
    if (bucket.tokens < 1) return (1 - bucket.tokens) / perMs
    bucket.tokens -= 1
    return 0
  }

  forget(group: string): void {
    this.#total -= this.#groups.get(group)?.size ?? 0
    this.#groups.delete(group)
  }

  #makeRoom(own: Map<string, Bucket>): void {
    if (this.#total < this.most) return
    let from = own
    if (own.size * this.#groups.size < this.#total)
      for (const group of this.#groups.values()) if (group.size > from.size) from = group
    const [oldest] = from.keys()
    if (oldest !== undefined && from.delete(oldest)) this.#total--
  }
}

/** What whoever has to wait is answered. */
export const tooMany = (waitMs: number): OwnAnswer => ({
  status: 429,
  sentence: 'Too many requests. Try again later.',
  headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) }
})
