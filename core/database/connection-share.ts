import { Problem } from 'busbar/sdk'

interface ShareOptions {
  /** Whose it is, for the error that names it. */
  readonly owner: string
  /** How many connections may be in its hands at a time. */
  readonly limit: number
  /** How long one of its callers waits for another to give a connection back. */
  readonly waitMs: number
  /** The share that this one is a part of. */
  readonly within?: ConnectionShare | undefined
}

type Taken = (refused?: Problem) => void
interface Waiting {
  readonly taken: Taken
  readonly timer: NodeJS.Timeout
}

/**
 * How much of the pool one owner may hold, so that nobody who opens transactions and does not end them
 * keeps the others from their work. With callbacks: it is asked for every statement.
 */
export class ConnectionShare {
  #held = 0
  readonly #waiting = new Set<Waiting>()

  constructor(readonly options: ShareOptions) {}

  get held(): number {
    return this.#held
  }

  /** Calls back with nothing when a connection may be asked for, or with why not. */
  take(taken: Taken): void {
    const { within, limit, waitMs } = this.options
    const own: Taken =
      within === undefined
        ? taken
        : refused => {
            if (refused !== undefined) {
              taken(refused)
              return
            }
            within.take(late => {
              if (late !== undefined) this.#giveOwn()
              taken(late)
            })
          }
    if (this.#held < limit) {
      this.#held++
      own()
      return
    }
    const waiting: Waiting = {
      taken: own,
      timer: setTimeout(() => {
        this.#waiting.delete(waiting)
        taken(this.#refusal())
      }, waitMs)
    }
    this.#waiting.add(waiting)
  }

  give(): void {
    this.options.within?.give()
    this.#giveOwn()
  }

  #giveOwn(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#held--
      return
    }
    this.#waiting.delete(next)
    clearTimeout(next.timer)
    next.taken()
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
