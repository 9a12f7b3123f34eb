import { pipeline } from 'node:stream/promises'
import type { BulkConnection } from 'busbar/sdk'
import { type Catalog, type Definition, qualified, quoted, type Sequence, type Table } from './catalog.js'
import { copiedPart, createSequence, createTable, ownSequence, setSequence } from './table-sql.js'

type Query = Pick<BulkConnection, 'query'>

/** Undefined: a schema, an object, a table, a column, a function. What a statement needs may be made by a later one. */
const notYetThere: ReadonlySet<string> = new Set(['3F000', '42704', '42P01', '42703', '42883', '42P17'])

/** Takes down what is there of these schemas. To be called in the transaction that makes them anew. */
export async function dropSchemas(connection: Query, schemas: readonly string[]): Promise<void> {
  for (const schema of schemas) await connection.query(`drop schema if exists ${quoted(schema)} cascade`)
}

/**
 * Makes schemas, types, functions and tables, without keys and indexes: those are made faster once the rows are there,
 * and rows then come in any order, whatever refers to what, in circles too. Answers what the server does not have and
 * nothing else may need: extensions.
 */
export async function createTables(
  connection: Query,
  catalog: Catalog,
  major: number
): Promise<readonly string[]> {
  await connection.query('set local check_function_bodies = off')
  for (const schema of catalog.schemas) await connection.query(`create schema ${quoted(schema)}`)
  const missing = await createExtensions(connection, catalog)
  const identities = identitiesOf(catalog.sequences)
  await inAnyOrder(connection, [
    ...catalog.definitions.map(definition => ({ ...definition, statements: [definition.sql] })),
    ...catalog.sequences
      .filter(({ ofIdentity }) => !ofIdentity)
      .map(sequence => ({
        what: `the sequence ${sequence.schema}.${sequence.name}`,
        statements: [createSequence(sequence)]
      })),
    ...catalog.tables.map(table => ({
      what: `the table ${table.schema}.${table.name}`,
      statements: createTable(table, identities.get(qualified(table)) ?? new Map(), major)
    }))
  ])
  for (const sequence of catalog.sequences) {
    const owned = ownSequence(sequence)
    if (owned !== null) await make(connection, { what: `the owner of ${sequence.name}`, sql: owned })
  }
  return missing
}

/** Puts the rows of a table in, from the bytes that `copy` wrote. */
export async function fillTable(
  connection: BulkConnection,
  table: Table,
  bytes: AsyncIterable<Buffer>
): Promise<void> {
  const part = copiedPart(table)
  if (part === null) throw new Error(`${table.schema}.${table.name} has no rows of its own`)
  await pipeline(bytes, connection.copyIn(`copy ${part} from stdin`)).catch((error: unknown) => {
    throw explained(`the rows of ${table.schema}.${table.name}`, error)
  })
}

/** Everything that is checked and kept by the database itself, once all rows are there. */
export async function finishTables(connection: Query, catalog: Catalog): Promise<void> {
  for (const sequence of catalog.sequences) await connection.query(setSequence(sequence))
  for (const definition of [...catalog.constraints, ...catalog.indexes, ...catalog.foreignKeys])
    await make(connection, definition)
  for (const view of catalog.refresh) await connection.query(`refresh materialized view ${view}`)
  for (const definition of catalog.rest) await make(connection, definition)
}

async function createExtensions(connection: Query, { extensions }: Catalog): Promise<string[]> {
  const missing: string[] = []
  for (const { name, schema } of extensions) {
    const sql = `create schema if not exists ${quoted(schema)}; create extension if not exists ${quoted(name)} with schema ${quoted(schema)}`
    // Most are not needed by what is restored; what is fails by itself then.
    if ((await attempt(connection, [sql])) !== null) missing.push(`the extension ${name}`)
  }
  return missing
}

function identitiesOf(sequences: readonly Sequence[]): Map<string, Map<string, Sequence>> {
  const found = new Map<string, Map<string, Sequence>>()
  for (const sequence of sequences) {
    if (!sequence.ofIdentity || sequence.owner === null) continue
    const table = qualified({ schema: sequence.owner.schema, name: sequence.owner.table })
    const columns = found.get(table) ?? new Map<string, Sequence>()
    columns.set(sequence.owner.column, sequence)
    found.set(table, columns)
  }
  return found
}

interface Making {
  readonly what: string
  readonly statements: readonly string[]
}

/** Functions take types of tables, tables have defaults by functions, views are of both: each is tried until all are made. */
async function inAnyOrder(connection: Query, all: readonly Making[]): Promise<void> {
  let left = all
  while (left.length > 0) {
    const failed: Array<{ readonly making: Making; readonly error: unknown }> = []
    for (const making of left) {
      const error = await attempt(connection, making.statements)
      if (error === null) continue
      if (!notYetThere.has(codeOf(error))) throw explained(making.what, error)
      failed.push({ making, error })
    }
    const [first] = failed
    if (first !== undefined && failed.length === left.length) throw explained(first.making.what, first.error)
    left = failed.map(({ making }) => making)
  }
}

/** Null when it was done, else why nothing of it was. */
async function attempt(connection: Query, statements: readonly string[]): Promise<unknown> {
  await connection.query('savepoint attempt')
  try {
    for (const sql of statements) await connection.query(sql)
  } catch (error) {
    await connection.query('rollback to savepoint attempt; release savepoint attempt')
    return error
  }
  await connection.query('release savepoint attempt')
  return null
}

async function make(connection: Query, { what, sql }: Definition): Promise<void> {
  await connection.query(sql).catch((error: unknown) => {
    throw explained(what, error)
  })
}

const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''

const explained = (what: string, error: unknown): Error =>
  new Error(`${what} could not be restored: ${error instanceof Error ? error.message : String(error)}`, {
    cause: error
  })
