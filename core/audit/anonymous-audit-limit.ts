import { type Clock, networkOf } from 'busbar/sdk'
import { RateLimiter } from '../limits/rate-limiter.js'

const hourMs = 3_600_000

/** How many records of callers without a credential are kept in an hour: of one address (an IPv6 /64), and of all. */
export const anonymousAuditPolicy = { perAddress: 60, inAll: 1_000 } as const

interface Admission {
  readonly isRecorded: boolean
  /** How many were left out since the last one that was recorded. */
  readonly unrecorded: number
}

/**
 * Failed sign-ins belong in the audit log, and an anonymous caller can make as many as the network carries. Beyond the limit
 * they are counted, and the next record says how many: the table grows by a bounded amount, whatever is sent.
 */
export class AnonymousAuditLimit {
  readonly #windows: RateLimiter
  #unrecorded = 0

  constructor(clock: Clock) {
    this.#windows = new RateLimiter(clock)
  }

  admit(ip: string): Admission {
    const isRecorded =
      this.#windows.take(`ip:${networkOf(ip)}`, anonymousAuditPolicy.perAddress, hourMs).allowed &&
      this.#windows.take('all', anonymousAuditPolicy.inAll, hourMs).allowed
    const unrecorded = isRecorded ? this.#unrecorded : this.#unrecorded + 1
    this.#unrecorded = isRecorded ? 0 : unrecorded
    return { isRecorded, unrecorded }
  }
}
