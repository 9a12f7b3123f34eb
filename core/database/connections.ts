import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg'
import { isConnectionError, storeError, wasNeverSent } from './problems.js'
import { Statement } from './statement.js'

/**
 * Statements on the pool's connections. pool.query() throws a connection away after any error, a violated
 * constraint included; this keeps it unless the connection itself has failed.
 */
export class Connections {
  constructor (private readonly pool: Pool) {}

  /** Runs one statement on any connection. */
  execute<Row extends object> (query: QueryConfig): Promise<QueryResult<Row>> {
    return this.#first<Row, QueryResult<Row>>(query, (client, result) => {
      client.release()
      return result
    })
  }

  begin (): Promise<Transaction> {
    return this.#first({ text: 'begin' }, client => new Transaction(client))
  }

  /**
   * After a restart of the server, the pool may still hold connections of before it. What could not even
   * be sent on one of them is sent on another.
   */
  async #first<Row extends object, T> (query: QueryConfig, finish: (client: PoolClient, result: QueryResult<Row>) => T): Promise<T> {
    for (let left = this.pool.options.max; ; left--) {
      try {
        return await this.#once(query, finish)
      } catch (error) {
        retrace(error)
        if (left === 0 || !wasNeverSent(error)) throw storeError(error)
      }
    }
  }

  /** With callbacks: this is run for every statement, and each promise on the way costs. */
  #once<Row extends object, T> (query: QueryConfig, finish: (client: PoolClient, result: QueryResult<Row>) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.pool.connect((refused, client) => {
        if (client === undefined) { reject(refused ?? new Error('the pool gave no connection')); return }
        client.query(new Statement<Row>(query, (error, result) => {
          if (error == null) { resolve(finish(client, result)); return }
          client.release(isConnectionError(error))
          reject(error)
        }))
      })
    })
  }
}

/** A connection on which a transaction has begun. Its statements wait for each other, as pg is about to stop queueing them. */
export class Transaction {
  readonly afterCommit: Array<() => void> = []
  #tail: Promise<unknown> = Promise.resolve()
  #isBroken = false

  constructor (private readonly client: PoolClient) {}

  async execute<Row extends object> (query: QueryConfig): Promise<QueryResult<Row>> {
    const answer = this.#tail.then(() => send<Row>(this.client, query))
    this.#tail = answer.catch(() => {})
    try {
      return await answer
    } catch (error) {
      retrace(error)
      if (isConnectionError(error)) this.#isBroken = true
      throw storeError(error)
    }
  }

  release (): void {
    this.client.release(this.#isBroken)
  }
}

function send<Row extends object> (client: PoolClient, query: QueryConfig): Promise<QueryResult<Row>> {
  return new Promise((resolve, reject) => {
    client.query(new Statement<Row>(query, (error, result) => {
      if (error == null) resolve(result)
      else reject(error)
    }))
  })
}

/** From where this is called the stack leads back to who asked; pg's ends where bytes came in. */
function retrace (error: unknown): void {
  if (error instanceof Error) Error.captureStackTrace(error, retrace)
}
