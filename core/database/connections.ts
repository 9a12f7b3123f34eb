import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import { type ConnectionShare, markHeld } from './connection-share.js'
import type { LockWatch } from './lock-watch.js'
import { isConnectionError, retrace, storeError, wasNeverSent } from './problems.js'
import { sendable } from './sendable.js'
import { begunByText, changesSession, isInTransaction, mayHaveChangedSession } from './session-state.js'
import { Statement } from './statement.js'
import { Transaction } from './transaction.js'

/**
 * Statements on the pool's connections. pool.query() throws a connection away after any error, a violated
 * constraint included; this keeps it unless the connection itself has failed.
 */
export class Connections {
  /** `stranger`: of a third-party plugin's connections, its id. What its SQL code leaves on one is for nobody else. */
  constructor(
    private readonly pool: Pool,
    private readonly locks: LockWatch,
    /** What connections of the pool wait for. */
    private readonly waits: () => string | undefined,
    private readonly share?: ConnectionShare,
    readonly stranger?: string
  ) {}

  /** Runs one statement on any connection. */
  execute<Row extends object>(query: QueryConfig): Promise<QueryResult<Row>> {
    return this.read<Row, QueryResult<Row>>(query, result => result)
  }

  /** The same for what `read` makes of the result, or `failed` of the error: a promise more for each would cost every statement. */
  read<Row extends object, T>(
    query: QueryConfig,
    read: (result: QueryResult<Row>) => T,
    failed?: (error: unknown) => Promise<T>
  ): Promise<T> {
    return this.#first<Row, T>(
      query,
      (client, result) => {
        const isBegun = isInTransaction(client)
        // What one statement has set must not be in force for the next, which may be another plugin's.
        const isChanged = isBegun || changesSession(query, result)
        if (isChanged || !this.#passOn(client)) this.#giveBack(client, isChanged)
        if (isBegun) throw begunByText()
        return read(result)
      },
      failed
    )
  }

  begin(): Promise<Transaction> {
    return this.#first(
      { text: 'begin' },
      client =>
        new Transaction(client, this.locks, this.stranger, isBroken => {
          this.#giveBack(client, isBroken)
        })
    )
  }

  /** Not past those who wait for the pool itself, and not when that closes. */
  #passOn(client: PoolClient): boolean {
    const { pool, share } = this
    return share !== undefined && pool.waitingCount === 0 && !pool.ending && share.passOn(client)
  }

  #giveBack(client: PoolClient, isBroken = false): void {
    client.release(isBroken)
    this.share?.give()
  }

  #first<Row extends object, T>(
    query: QueryConfig,
    finish: (client: PoolClient, result: QueryResult<Row>) => T,
    failed?: (error: unknown) => Promise<T>
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#try(sendable(query), finish, this.pool.options.max, resolve, reject)
    }).catch((error: unknown) => {
      retrace(error)
      const known = storeError(error, this.waits)
      if (failed === undefined) throw known
      return failed(known)
    })
  }

  /**
   * After a restart of the server, the pool may still hold connections of before it. What could not even
   * be sent on one of them is sent on another: `left` times.
   * With callbacks: this is run for every statement, and each promise on the way costs.
   */
  #try<Row extends object, T>(
    query: QueryConfig,
    finish: (client: PoolClient, result: QueryResult<Row>) => T,
    left: number,
    resolve: (result: T) => void,
    reject: (error: unknown) => void
  ): void {
    const fail = (error: unknown): void => {
      if (left > 0 && wasNeverSent(error)) this.#try(query, finish, left - 1, resolve, reject)
      else reject(error)
    }
    const send = (client: PoolClient): void => {
      markHeld(client, this.share)
      client.query(
        new Statement<Row>(query, (error, result) => {
          if (error == null) {
            try {
              resolve(finish(client, result))
            } catch (fault) {
              fail(fault)
            }
            return
          }
          this.#giveBack(client, isConnectionError(error) || mayHaveChangedSession(query))
          fail(this.locks.explain(error, client))
        })
      )
    }
    const connect = (refusal?: Error, passed?: PoolClient): void => {
      if (refusal !== undefined) {
        fail(refusal)
      } else if (passed !== undefined) {
        send(passed)
      } else {
        this.pool.connect((refused, client) => {
          if (client === undefined) {
            this.share?.give()
            this.locks.noteRefusal(refused)
            fail(refused ?? new Error('the pool gave no connection'))
            return
          }
          send(client)
        })
      }
    }
    if (this.share === undefined) connect()
    else this.share.take(connect)
  }
}
