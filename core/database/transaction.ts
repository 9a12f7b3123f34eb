import type { PoolClient, QueryConfig, QueryResult } from 'pg'
import type { LockWatch } from './lock-watch.js'
import { errorCode, isConnectionError, retrace, storeError } from './problems.js'
import { sendable } from './sendable.js'
import { changesSession, isInTransaction } from './session-state.js'
import { Statement } from './statement.js'

const idleInTransaction = '25P03'

/** A connection on which a transaction has begun. Its statements wait for each other, as pg is about to stop queueing them. */
export class Transaction {
  readonly afterCommit: Array<() => void> = []
  #tail: Promise<unknown> = Promise.resolve()
  #isBroken = false
  #isReleased = false
  #lost: Error | undefined

  constructor(
    private readonly client: PoolClient,
    private readonly locks: LockWatch,
    /** The third-party plugin whose connection it is. */
    private readonly stranger: string | undefined,
    private readonly giveBack: (isBroken: boolean) => void
  ) {
    client.once('error', this.#onLost)
    client.once('end', this.#onLost)
  }

  async execute<Row extends object>(query: QueryConfig): Promise<QueryResult<Row>> {
    const answer = this.#tail.then(async () => {
      if (this.#lost !== undefined) throw this.#lost
      const result = await send<Row>(this.client, sendable(query))
      // `set local` looks the same as `set`: to throw a connection away costs little.
      if (changesSession(query, result)) this.#isBroken = true
      return result
    })
    this.#tail = answer.catch(() => {})
    try {
      return await answer
    } catch (error) {
      retrace(error)
      if (isConnectionError(error)) this.#isBroken = true
      throw storeError(this.locks.explain(error, this.client, true))
    }
  }

  /** SQL code of a third-party plugin may set what no statement shows: on a connection of anybody else it is the last to run. */
  enter(stranger: string | undefined): this {
    if (stranger !== undefined && stranger !== this.stranger) this.#isBroken = true
    return this
  }

  release(): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.client.off('error', this.#onLost)
    this.client.off('end', this.#onLost)
    this.giveBack(this.#isBroken || isInTransaction(this.client))
  }

  /** Given back at once: the code that began it may never end it. */
  readonly #onLost = (error?: Error): void => {
    this.#lost ??=
      errorCode(error) === idleInTransaction
        ? new Error(
            'the transaction was ended because nothing was asked in it for too long: wait for nothing but the database inside transaction(…)',
            { cause: error }
          )
        : (error ?? new Error('Connection terminated'))
    this.#isBroken = true
    this.release()
  }
}

function send<Row extends object>(client: PoolClient, query: QueryConfig): Promise<QueryResult<Row>> {
  return new Promise((resolve, reject) => {
    client.query(
      new Statement<Row>(query, (error, result) => {
        if (error == null) resolve(result)
        else reject(error)
      })
    )
  })
}
