import { createHash } from 'node:crypto'
import type { Log, Tx } from 'busbar/sdk'
import type pg from 'pg'
import type { Connections } from './connections.js'
import knex, { type Knex } from './knex.js'
import { errorCode } from './problems.js'
import type { Transaction } from './transaction.js'

type Values = readonly unknown[]
type Bindings = Values | Readonly<Record<string, unknown>>

/** Of a statement's name, so that with what is added it stays below the 63 bytes where PostgreSQL cuts. */
const maxNameLength = 48

/** Transactions under way, by the handle that is passed around: from one owner of connections to another too. */
export type OpenTransactions = WeakMap<Tx, Transaction>

interface StatementsParts {
  readonly connections: Connections
  readonly open: OpenTransactions
  readonly log: Log
}

/** Queries, prepared statements and transactions on connections of one owner's share. */
export class Statements {
  readonly #connections: Connections
  readonly #open: OpenTransactions
  readonly #log: Log
  readonly #knex: Knex

  constructor({ connections, open, log }: StatementsParts) {
    this.#connections = connections
    this.#open = open
    this.#log = log
    this.#knex = knexOver(connections)
  }

  /** Plain SQL with `$1` parameters. */
  async query<Row extends object>(text: string, values?: Values, tx?: Tx): Promise<Row[]> {
    return (await this.#run<Row>({ text, values: values === undefined ? undefined : [...values] }, tx)).rows
  }

  table<Row extends object>(schema: string, name: string, tx?: Tx): Knex.QueryBuilder<Row, Row[]> {
    const builder = this.#knex<Row, Row[]>(name).withSchema(schema)
    if (tx !== undefined) void builder.connection(this.#opened(tx))
    return builder
  }

  /** SQL with knex bindings; `$schema` stands for `schema`. */
  async sql<Row extends object>(schema: string, text: string, bindings?: Bindings, tx?: Tx): Promise<Row[]> {
    const withSchema = text.replaceAll('$schema', schema)
    if (bindings === undefined) return await this.query<Row>(withSchema, undefined, tx)
    const compiled = this.#knex.client.raw(withSchema, bindings).toSQL().toNative()
    return await this.query<Row>(compiled.sql, compiled.bindings, tx)
  }

  statement<Row extends object, Args extends Values>(
    name: string,
    text: string
  ): (args: Args, tx?: Tx) => Promise<Row[]> {
    // The text is part of the name: connections outlive a plugin that comes back with another version of it.
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 8)
    const prefix = `${name.slice(0, maxNameLength)}.${digest}`
    let plan = 0
    let planName = `${prefix}.${plan}`
    const noteChange = (error: unknown): void => {
      // A migration has changed the columns under a plan made before it.
      if (errorCode(error) !== '0A000') throw error
      plan++
      planName = `${prefix}.${plan}`
    }
    const runIn = async (tx: Tx, values: unknown[]): Promise<Row[]> => {
      try {
        return rowsOf(await this.#opened(tx).execute<Row>({ name: planName, text, values }))
      } catch (error) {
        noteChange(error)
        throw error
      }
    }
    // Without `async`: most requests run one, and each promise on the way costs.
    return (args, tx) => {
      try {
        const values = [...args]
        if (tx !== undefined) return runIn(tx, values)
        return this.#connections.read<Row, Row[]>({ name: planName, text, values }, rowsOf, async error => {
          noteChange(error)
          return rowsOf(await this.#connections.execute<Row>({ name: planName, text, values }))
        })
      } catch (error) {
        return Promise.reject(error as Error)
      }
    }
  }

  async transaction<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    const transaction = await this.#connections.begin()
    // The brand exists in types only: the object itself says nothing.
    const tx = Object.freeze({}) as Tx
    this.#open.set(tx, transaction)
    const end = async (text: string): Promise<pg.QueryResult> => {
      this.#open.delete(tx)
      return await transaction.execute({ text })
    }
    try {
      const result = await Promise.resolve(tx)
        .then(run)
        .catch(async (error: unknown) => {
          // When the connection is gone, so is the transaction; the first error is the one that tells.
          await end('rollback').catch(() => {})
          throw error
        })
      const { command } = await end('commit')
      if (command !== 'COMMIT')
        throw new Error(
          'the transaction was rolled back: a statement in it had failed and its error was ignored'
        )
      for (const after of transaction.afterCommit) {
        try {
          after()
        } catch (error) {
          // Nothing can be undone any more.
          this.#log.error({ err: error }, 'work registered for after a commit failed')
        }
      }
      return result
    } finally {
      transaction.release()
    }
  }

  /** Runs when the transaction has committed. */
  afterCommit(tx: Tx, run: () => void): void {
    this.#opened(tx).afterCommit.push(run)
  }

  #run<Row extends object>(query: pg.QueryConfig, tx?: Tx): Promise<pg.QueryResult<Row>> {
    return (tx === undefined ? this.#connections : this.#opened(tx)).execute<Row>(query)
  }

  #opened(tx: Tx): Transaction {
    const transaction = this.#open.get(tx)
    if (transaction === undefined)
      throw new Error('this transaction has ended: await everything that uses it inside transaction(…)')
    return transaction.enter(this.#connections.stranger)
  }
}

const rowsOf = <Row extends object>({ rows }: pg.QueryResult<Row>): Row[] => rows

/**
 * knex over the pool. Of knex's own client only the compilation of queries is used: its way of running
 * them puts the SQL with all values into the message of an error.
 */
function knexOver(connections: Connections): Knex {
  const builder = knex.knex({ client: 'pg', version: '15' })
  Object.assign(builder.client, {
    acquireConnection: async () => connections,
    releaseConnection: async () => {},
    // A builder in a transaction brings a connection of its own.
    query: async (on: Connections | Transaction, query: { sql: string; bindings: unknown[] }) => {
      const response = await on.execute({
        text: builder.client.positionBindings(query.sql),
        values: builder.client.prepBindings(query.bindings)
      })
      return { ...query, response }
    }
  })
  return builder
}
