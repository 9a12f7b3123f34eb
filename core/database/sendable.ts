import type { QueryConfig } from 'pg'
import { prepareValue } from 'pg/lib/utils.js'

/**
 * The statement with its values as PostgreSQL gets them. Throws for one that cannot be sent (a BigInt in an object, an object in
 * itself), before there is a connection: on one, pg would leave the statement half sent, and have its callback called twice.
 */
export function sendable(query: QueryConfig): QueryConfig {
  const { values } = query
  return values === undefined || values.length === 0 ? query : { ...query, values: values.map(prepareValue) }
}
