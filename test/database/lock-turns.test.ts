import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { type Test, test } from 'tap'
import { lockWaitsText, type SeenWait } from '../../core/database/lock-waits.js'
import { migrate } from '../../core/database/migrations.js'
import type { PostgresOptions } from '../../core/database/postgres.js'
import { log } from './database-kit.js'
import { isWaiting, shop } from './lock-kit.js'

const update = "update shop.thing set name = 'two' where id = 1"

const lockCatalogs =
  'lock table pg_catalog.pg_class, pg_attribute, pg_proc, pg_type, pg_index, pg_statistic, pg_namespace, pg_operator in access exclusive mode'

/** A database, and who was ended in it. */
async function watched(t: Test, more: Partial<PostgresOptions> = {}) {
  const ended: Array<readonly [string, string]> = []
  const postgres = await shop(t, {
    lockTimeoutMs: 20_000,
    blockingLimitMs: 600,
    onEnded: (...args) => ended.push(args),
    ...more
  })
  return { postgres, ended }
}

/** Repeats it until the returned function is called, whatever becomes of it. */
function repeat(work: () => Promise<unknown>): () => Promise<void> {
  let isOver = false
  const run = async () => {
    // Bounded, so that a test that fails ends.
    for (let n = 0; n < 60 && !isOver; n++) await work().catch(() => {})
  }
  const done = run()
  return async () => {
    isOver = true
    await done
  }
}

test('a lock that a function of a plugin holds for the session does not keep migrations waiting for long', async t => {
  const { postgres, ended } = await watched(t)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await postgres.query(
    'create schema x_bad; create function x_bad.lk () returns void language sql as $$ select pg_advisory_lock(1651864418, 1) $$'
  )
  await bad.query('select x_bad.lk()')
  const stop = repeat(async () => await bad.query('select pg_sleep(0.2)'))
  const { failed } = await migrate(postgres, [], { version: '1.0.0', log })
  await stop()
  t.equal(failed.size, 0)
  t.equal(ended.length, 1)
})

test('a plugin whose connection has the lock of migrations is ended, whatever it runs meanwhile', async t => {
  const { postgres, ended } = await watched(t)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  // Not given back in between, and another transaction with each statement.
  const stop = repeat(
    async () =>
      await bad.query(
        'do $$ begin perform pg_advisory_lock(1651864418, 1); for n in 1..30 loop perform pg_sleep(0.1); commit; end loop; end $$'
      )
  )
  await until(
    async () =>
      (
        await postgres.query(
          `select from pg_locks where locktype = 'advisory' and classid = 1651864418 and database = (select oid from pg_database where datname = current_database())`
        )
      ).length > 0,
    'the lock is held'
  )
  await migrate(postgres, [], { version: '1.0.0', log })
  await stop()
  t.match(ended, [
    ['bad', /^its connection to the database was ended, as it kept what the platform needs locked/]
  ])
})

test('short transactions of a plugin in turn do not keep a statement of the platform waiting for longer than one', async t => {
  const { postgres, ended } = await watched(t)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const hold = async () =>
    await bad.transaction(async tx => {
      await bad.query('select from shop.thing where id = 1 for update', [], tx)
      await bad.query('select pg_sleep(0.4)', [], tx)
    })
  const stops = [repeat(hold), repeat(hold), repeat(hold)]
  await isWaiting(postgres, 2)
  await postgres.query(update)
  for (const stop of stops) await stop()
  t.ok(ended.length > 0, 'they are ended')
  for (const one of ended) t.match(one, ['bad', /kept shop\.thing locked and the platform waiting/])
})

test('short transactions of a plugin, of which each keeps another statement waiting, are let be', async t => {
  const { postgres, ended } = await watched(t, { blockingLimitMs: 1_000 })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  for (let n = 0; n < 8; n++) {
    let behind: Promise<unknown> | undefined
    await bad.transaction(async tx => {
      await bad.query(update, [], tx)
      behind = postgres.query(update)
      await isWaiting(postgres)
      await bad.query('select pg_sleep(0.2)', [], tx)
    })
    await behind
  }
  t.same(ended, [])
})

test('a plugin that has a table and waits for another plugin is not ended for what that one keeps locked', async t => {
  const { postgres, ended } = await watched(t)
  const evil = postgres.for({ plugin: 'evil', kind: 'third-party' })
  const victim = postgres.for({ plugin: 'victim', kind: 'third-party' })
  const end = new AbortController()
  const held = new AbortController()
  const isHeld = once(held.signal, 'abort')
  const holding = evil
    .transaction(async tx => {
      await evil.query('select pg_advisory_xact_lock(5, 5)', [], tx)
      held.abort()
      if (!end.signal.aborted) await once(end.signal, 'abort')
      await evil.query('select 1', [], tx)
    })
    .then(
      () => 'done',
      () => 'ended'
    )
  await isHeld
  const reading = victim.transaction(async tx => {
    await victim.query('select from shop.thing', [], tx)
    await victim.query('select pg_advisory_xact_lock(5, 5)', [], tx)
  })
  await isWaiting(postgres)
  await postgres.query('alter table shop.thing add column more int')
  await reading
  end.abort()
  t.equal(await holding, 'ended')
  // Its connection may be gone before that is told.
  await until(() => ended.length > 0, 'it is told that it was ended')
  t.same(
    ended.map(([plugin]) => plugin),
    ['evil']
  )
})

test('of many that wait for the same, each has few before it in what is looked at, and who has it among them', async t => {
  const { postgres } = await watched(t)
  const clients = Array.from({ length: 40 }, () => new pg.Client({ connectionString: postgres.url }))
  t.teardown(async () => {
    for (const client of clients) client.connection.stream.destroy()
  })
  for (const client of clients) client.on('error', () => {})
  await Promise.all(clients.map(async client => await client.connect()))
  const [holder, ...others] = clients
  await holder?.query('select pg_advisory_lock(7, n) from generate_series(1, 5000) n')
  for (const client of others) client.query('select pg_advisory_lock(7, 1)').catch(() => {})
  await isWaiting(postgres, others.length)
  const waits = await postgres.session.query<SeenWait>(lockWaitsText, [[], false])
  const holderId = (holder as unknown as { processID: number }).processID
  const waiting = new Map<number, boolean[]>()
  for (const wait of waits)
    waiting.set(wait.waiting, [
      ...(waiting.get(wait.waiting) ?? []),
      wait.blocker === holderId && !wait.isQueued
    ])
  t.equal(waiting.size, others.length)
  for (const before of waiting.values()) {
    t.ok(before.includes(true))
    t.ok(before.length <= 16)
  }
})

test('a plugin that keeps the catalogs locked is ended, and named', async t => {
  const { postgres, ended } = await watched(t)
  const calm = postgres.for({ plugin: 'calm', kind: 'third-party' })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await postgres.session.connected()
  // Once it has been asked, it can be again.
  await postgres.locks.signal(0, 'terminate')
  const others = calm.query('select pg_sleep(2)')
  const locked = new AbortController()
  const isLocked = once(locked.signal, 'abort')
  const holding = bad
    .transaction(async tx => {
      await bad.query(lockCatalogs, [], tx)
      locked.abort()
      await bad.query('select pg_sleep(15)', [], tx)
    })
    .then(
      () => undefined,
      (error: unknown) => error
    )
  await isLocked
  await postgres.query('select count(*) from shop.thing where name is not null group by id')
  const reason = /^its connection to the database was ended, as it kept system catalogs locked/
  t.match(await holding, { message: reason })
  await until(() => ended.length > 0, 'it to be said')
  t.match(ended, [['bad', reason]])
  await others
})

test('where nobody can be asked who has the catalogs locked, the plugin that is at it for longest is ended', async t => {
  const { postgres, ended } = await watched(t)
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const late = postgres.for({ plugin: 'late', kind: 'third-party' })
  await late.query('select 1')
  await postgres.session.connected()
  const { session } = postgres
  const query = session.query.bind(session)
  let isBlind = false
  session.query = async <Row extends object>(...args: Parameters<typeof query>) => {
    // As when its connection is new, and it would have to read them.
    if (isBlind && args[0].includes('pg_blocking_pids'))
      return await query<Row>('select from pg_class limit 1')
    return await query<Row>(...args)
  }
  for (const work of ['select pg_sleep(15)', undefined]) {
    ended.length = 0
    const locked = new AbortController()
    const isLocked = once(locked.signal, 'abort')
    const end = new AbortController()
    const holding = bad
      .transaction(async tx => {
        await bad.query(lockCatalogs, [], tx)
        locked.abort()
        if (work !== undefined) await bad.query(work, [], tx)
        else if (!end.signal.aborted) await once(end.signal, 'abort')
        await bad.query('select 1', [], tx)
      })
      .then(
        () => undefined,
        (error: unknown) => error
      )
    await isLocked
    isBlind = true
    // Whoever is at work for less long is let be.
    const others = late.query('select pg_sleep(0.1)')
    await until(() => ended.length > 0, 'one to be ended')
    await others
    isBlind = false
    end.abort()
    const reason =
      /^its connection to the database was ended, as system catalogs were locked, and it was in a transaction/
    t.match(await holding, { message: reason })
    t.match(ended, [['bad', reason]])
  }
})
