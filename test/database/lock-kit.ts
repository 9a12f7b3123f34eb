import { until } from 'busbar/sdk/testing'
import type { Test } from 'tap'
import type { Postgres, PostgresOptions } from '../../core/database/postgres.js'
import { freshPostgres } from './database-kit.js'

const published = `create schema shop; create table shop.thing (id int primary key, name text); insert into shop.thing values (1, 'one')`

/** A database with a table `shop.thing`, in which is looked often who waits. */
export async function shop(t: Test, more: Partial<PostgresOptions> = {}): Promise<Postgres> {
  const postgres = await freshPostgres(t, 6, { lookEveryMs: 50, ...more })
  await postgres.query(published)
  return postgres
}

export const isWaiting = async (postgres: Postgres, most = 1): Promise<unknown> =>
  await until(async () => {
    await postgres.session.connected()
    const rows = await postgres.session.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    return rows.length >= most
  }, 'statements wait for a lock')

export const isSleeping = async (postgres: Postgres): Promise<unknown> =>
  await until(async () => {
    await postgres.session.connected()
    const rows = await postgres.session.query(
      "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
    )
    return rows.length > 0
  }, 'a statement sleeps')
