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
}

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

  constructor(readonly options: ShareOptions) {}

  get held(): number {
    return this.#held
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
    const { owner, limit, waitMs } = this.options
    return new Problem(
      503,
      'E_DATABASE_BUSY',
      `${owner} has all of its ${limit} database connections in use, and none became free within ${waitMs / 1000} seconds: try again; if this stays, it opens transactions and does not end them`
    )
  }
}
