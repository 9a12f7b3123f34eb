import { pino } from 'pino'
import type { Test } from 'tap'
import { openPostgres, type Postgres, type PostgresOptions } from '../../core/database/postgres.js'
import { createDatabase } from '../cluster/database.js'

export const log = pino({ level: 'silent' })

/** The connections of one process to a fresh database, closed with the test. */
export async function freshPostgres(
  t: Test,
  maxConnections?: number,
  more: Partial<PostgresOptions> = {}
): Promise<Postgres> {
  const { url, drop } = await createDatabase()
  const postgres = await openPostgres({ url, log, maxConnections, ...more })
  t.teardown(async () => {
    await postgres.close()
    await drop()
  })
  return postgres
}

/** The connections of another process to the same database. */
export async function another(t: Test, { url }: Postgres): Promise<Postgres> {
  const postgres = await openPostgres({ url, log })
  t.teardown(async () => {
    await postgres.close()
  })
  return postgres
}
