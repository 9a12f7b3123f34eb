import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { PostgresOptions } from '../../core/database/postgres.js'
import { shop } from './lock-kit.js'

async function watched(t: Test, more: Partial<PostgresOptions> = {}) {
  const ended: Array<readonly [string, string]> = []
  const postgres = await shop(t, { blockingLimitMs: 600, onEnded: (...args) => ended.push(args), ...more })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  /** What becomes of a transaction of the plugin in which it has locked a table and does nothing that ends. */
  const lock = async (table: string, then = 'select 1'): Promise<{ holding: Promise<unknown> }> => {
    const locked = new AbortController()
    const isLocked = once(locked.signal, 'abort')
    const holding = bad
      .transaction(async tx => {
        await bad.query(`lock table ${table} in access exclusive mode`, [], tx)
        await bad.query(then, [], tx)
        locked.abort()
        await bad.query('select pg_sleep(20)', [], tx)
      })
      .then(
        () => undefined,
        (error: unknown) => error
      )
    await isLocked
    return { holding }
  }
  return { postgres, bad, ended, lock }
}

for (const table of ['pg_authid', 'pg_database'])
  test(`a plugin that keeps ${table} locked, so that nobody can connect, is ended and named`, async t => {
    const { postgres, ended, lock } = await watched(t)
    // These have been made already.
    await postgres.session.connected()
    await postgres.query('select 1')
    const { holding } = await lock(table)
    const others = Array.from({ length: 4 }, async () => await postgres.query('select pg_sleep(0.1)'))
    await Promise.all(others)
    const reason = /^its connection to the database was ended, as it kept system catalogs locked/
    t.match(await holding, { message: reason })
    await until(() => ended.length > 0, 'it to be said')
    t.match(ended, [['bad', reason]])
  })

test('a plugin that keeps the session from connecting again is ended, though nobody can be asked who it is', async t => {
  const { postgres, ended, lock } = await watched(t, { unansweredLimitMs: 500 })
  await postgres.session.connected()
  const { holding } = await lock(
    'pg_authid',
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'busbar session' and datname = current_database()"
  )
  const reason = /^its connection to the database was ended, as system catalogs were locked, and it was in/
  t.match(await holding, { message: reason })
  t.match(ended, [['bad', reason]])
  await postgres.session.connected()
  await Promise.all(Array.from({ length: 4 }, async () => await postgres.query('select pg_sleep(0.1)')))
})
