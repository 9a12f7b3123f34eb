import { Problem } from 'busbar/sdk'
import type { PoolClient } from 'pg'

interface ShareOptions {
  /** Whose it is, for the error that names it. */
  readonly owner: string
  /** How many connections it may hold at a time. */
  readonly limit: number
  /** How long one of its callers waits for another to give a connection back. */
  readonly waitMs: number
  /** The share that this one is a part of. */
  readonly within?: ConnectionShare | undefined
  /** Of the connections that it holds, what those wait for that wait for a lock. */
  readonly waits?: (share: ConnectionShare) => string | undefined
}

interface HeldConnection extends PoolClient {
  share?: ConnectionShare | undefined
  since?: number | undefined
}

/** Whose statement it serves from now on; for nothing but what errors say, and who is ended when nobody can be asked. */
export function markHeld(connection: PoolClient, share: ConnectionShare | undefined): void {
  const held: HeldConnection = connection
  held.share = share
  held.since = performance.now()
}

/** Since when it serves the statement or transaction that it serves. */
export const heldSince = ({ since }: HeldConnection): number | undefined => since

export const isHeldBy = ({ share }: HeldConnection, owner: ConnectionShare): boolean =>
  share === owner || (share !== undefined && share.options.within === owner)

/** Of those that hold most. */
const mostNamed = 3

/** With nothing when a connection may be asked for, with why not, or with one that has just become free. */
type Taken = (refused?: Problem, connection?: PoolClient) => void
interface Waiting {
  readonly taken: Taken
  readonly until: number
}

/**
 * How much of the pool one owner may hold, so that transactions which a plugin opens and does not end do not
 * keep the others from their work. With callbacks: it is asked for every statement.
 */
export class ConnectionShare {
  #held = 0
  /** In the order of asking, in which their time is up too. */
  readonly #waiting: Waiting[] = []
  /** One for all who wait: on a busy platform most statements wait, though for moments only. */
  #timer: NodeJS.Timeout | undefined

  /** Those that are within this one. */
  readonly #parts: ConnectionShare[] = []

  constructor(readonly options: ShareOptions) {
    if (options.within !== undefined) options.within.#parts.push(this)
  }

  get held(): number {
    return this.#held
  }

  /** How many wait for one of its connections. */
  get waiting(): number {
    return this.#waiting.length
  }

  get isAwaited(): boolean {
    return this.#waiting.length > 0
  }

  take(taken: Taken): void {
    if (this.#held < this.options.limit) {
      this.#held++
      this.#takeWithin(taken)
      return
    }
    this.#waiting.push({ taken, until: performance.now() + this.options.waitMs })
    this.#watch()
  }

  /**
   * Passes a connection on to who has waited longest for this share, which spares both the way through the pool. False
   * when none waits, or when others wait for the share that this one is a part of: it is their turn.
   */
  passOn(connection: PoolClient): boolean {
    if (this.options.within?.isAwaited === true) return false
    const next = this.#waiting.shift()
    next?.taken(undefined, connection)
    return next !== undefined
  }

  give(): void {
    this.options.within?.give()
    this.#giveOwn()
  }

  #takeWithin(taken: Taken): void {
    const { within } = this.options
    if (within === undefined) {
      taken()
      return
    }
    within.take(late => {
      if (late !== undefined) this.#giveOwn()
      taken(late)
    })
  }

  #giveOwn(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#held--
    else this.#takeWithin(next.taken)
  }

  /** Rejects those whose time is up, as long as any wait. */
  #watch(): void {
    const [first] = this.#waiting
    if (first === undefined || this.#timer !== undefined) return
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined
        const now = performance.now()
        while (this.#waiting[0] !== undefined && this.#waiting[0].until <= now)
          this.#waiting.shift()?.taken(this.#refusal())
        this.#watch()
      },
      Math.ceil(first.until - performance.now())
    ).unref()
  }

  #refusal(): Problem {
    const { owner, limit, waitMs, waits } = this.options
    const largest = this.#parts
      .filter(({ held }) => held > 0)
      .sort((a, b) => b.held - a.held)
      .slice(0, mostNamed)
      .map(part => `${part.options.owner} ${part.held}`)
    const holders = largest.length === 0 ? '' : ` (${largest.join(', ')})`
    const [has, its, who] =
      this.#parts.length === 0 ? ['has', 'its', 'it'] : ['have', 'their', 'who holds most']
    const cause =
      waits?.(this) ??
      `try again; if this stays, ${who} opens transactions and does not end them, or has statements that run long`
    return new Problem(
      503,
      'E_DATABASE_BUSY',
      `${owner} ${has} all of ${its} ${limit} database connections in use${holders}, and none became free within ${waitMs / 1000} seconds: ${cause}`
    )
  }
}
