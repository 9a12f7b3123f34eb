import type { Database } from 'busbar/sdk'
import type { Statements } from './statements.js'

/** A schema's name stands in SQL text as it is. */
const plainName = /^[a-z_][a-z0-9_]{0,62}$/

/** A plugin's view of the database: its own schema. */
export function pluginDatabase(postgres: Statements, schema: string): Database {
  if (!plainName.test(schema))
    throw new Error(`"${schema}" cannot be the name of a schema: use a-z, 0-9 and _`)
  return Object.freeze<Database>({
    schema,
    table: (name, tx) => postgres.table(schema, name, tx),
    sql: async (text, bindings, tx) => await postgres.sql(schema, text, bindings, tx),
    statement: (name, text) => postgres.statement(`${schema}.${name}`, text.replaceAll('$schema', schema)),
    transaction: async run => await postgres.transaction(run),
    afterCommit: (tx, run) => {
      postgres.afterCommit(tx, run)
    }
  })
}
