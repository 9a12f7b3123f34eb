import { once } from 'node:events'
import { until } from 'busbar/sdk/testing'
import pg from 'pg'
import { pino } from 'pino'
import { test } from 'tap'
import { type MigrationPlan, migrate } from '../../core/database/migrations.js'
import type { Postgres } from '../../core/database/postgres.js'
import { another, log } from './database-kit.js'
import { isSleeping, isWaiting, shop } from './lock-kit.js'

const insert = 'insert into shop.thing (id) values ($1)'

/** What takes an hour after it has locked a table of others. */
const lockAndSleep = (schema: string): string =>
  `create table ${schema}.part (thing_id int references shop.thing (id) on delete restrict); select pg_sleep(3600)`

const plan = (plugin: string, sql: string, isThirdParty = true): MigrationPlan => ({
  plugin,
  schema: `x_${plugin}`,
  isThirdParty,
  migrations: [{ name: '001-create', phase: 'expand', sql }]
})

test('a migration that keeps others waiting is cancelled, names the table, and says to be split; others go on', async t => {
  const postgres = await shop(t)
  const migrated = migrate(
    postgres,
    [plan('mig', lockAndSleep('$schema')), plan('next', 'create table $schema.thing (id int)')],
    { version: '1.0.0', log, blockingLimitMs: 300 }
  )
  await isSleeping(postgres)
  await postgres.query(insert, [2])
  const { failed } = await migrated
  t.match(
    failed.get('mig')?.message,
    /^migration 001-create of mig failed: it kept statements of others waiting for more than 0\.3 s, as it keeps shop\.thing locked until it ends: split it/
  )
  t.equal(failed.size, 1, 'the next one is made')
})

test('a migration that catches its cancelling is ended all the same, and fails its plugin alone', async t => {
  const postgres = await shop(t)
  const migrated = migrate(
    postgres,
    [
      plan(
        'stubborn',
        'lock table shop.thing in share mode; do $$ begin loop begin perform pg_sleep(3600); exception when query_canceled then null; end; end loop; end $$'
      ),
      plan('next', 'create table $schema.thing (id int)', false)
    ],
    { version: '1.0.0', log, blockingLimitMs: 300 }
  )
  await isSleeping(postgres)
  await postgres.query(insert, [2])
  const { failed } = await migrated
  t.match(failed.get('stubborn')?.message, /keeps shop\.thing locked until it ends: split it/)
  t.equal(failed.size, 1)
})

test('a migration that only waits for its lock is cancelled too when others stand behind it', async t => {
  const postgres = await shop(t)
  const end = new AbortController()
  const reading = postgres.transaction(async tx => {
    await postgres.query('select from shop.thing', [], tx)
    await once(end.signal, 'abort')
  })
  const migrated = migrate(postgres, [plan('mig', 'alter table shop.thing add column more int')], {
    version: '1.0.0',
    log,
    blockingLimitMs: 300
  })
  await isWaiting(postgres)
  t.same(await postgres.query('select name from shop.thing'), [{ name: 'one' }])
  t.match((await migrated).failed.get('mig')?.message, /keeps shop\.thing locked/)
  end.abort()
  await reading
})

test('the limit of time of a migration says so', async t => {
  const postgres = await shop(t)
  const { failed } = await migrate(postgres, [plan('slow', 'select pg_sleep(3600)')], {
    version: '1.0.0',
    log,
    thirdPartyLimitMs: 200
  })
  t.match(
    failed.get('slow')?.message,
    /^migration 001-create of slow failed: it took longer than the 0\.2 s that all migrations of a plugin have together/
  )
})

test('another process that waits for its turn to migrate does not cancel a migration', async t => {
  const postgres = await shop(t)
  const other = await another(t, postgres)
  const plans = [plan('slow', 'select pg_sleep(1.5)')]
  const migrated = migrate(postgres, plans, { version: '1.0.0', log, blockingLimitMs: 100 })
  await isSleeping(postgres)
  const outcomes = await Promise.all([migrated, migrate(other, plans, { version: '1.0.0', log })])
  for (const { failed } of outcomes) t.same([...failed], [])
})

for (const [what, hold] of [
  [
    'a statement',
    async (postgres: Postgres) => {
      const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
      await bad.query(lockAndSleep('x_bad'))
    }
  ],
  [
    'a transaction in which nothing is asked',
    async (postgres: Postgres) => {
      const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
      await bad.transaction(async tx => {
        await bad.query('lock table shop.thing in share mode', undefined, tx)
        await until(async () => {
          await bad.query('select 1', undefined, tx)
          return false
        }, 'the transaction to end')
      })
    }
  ]
] as const) {
  test(`${what} of a third-party plugin that keeps the platform waiting is ended, said to whom it belongs, and logged`, async t => {
    const ended: unknown[] = []
    const lines: string[] = []
    const postgres = await shop(t, {
      blockingLimitMs: 300,
      onEnded: (...args) => ended.push(args),
      log: pino({ level: 'warn' }, { write: line => void lines.push(line) })
    })
    await postgres.query('create schema x_bad')
    const holding = hold(postgres).then(
      () => undefined,
      (error: unknown) => error
    )
    const isHeld = async () =>
      (
        await postgres.query(
          `select from pg_locks where relation = 'shop.thing'::regclass and mode in ('ShareLock', 'ShareRowExclusiveLock') and granted and database = (select oid from pg_database where datname = current_database())`
        )
      ).length > 0
    await until(isHeld, 'the table is locked')
    await postgres.for({ plugin: 'calm', kind: 'built-in' }).query(insert, [2])
    const reason = /^its connection to the database was ended, as it kept shop\.thing locked/
    t.match(await holding, { message: reason })
    // The statement may fail before it is known that the signal was sent.
    await until(() => ended.length > 0, 'whose it was is said')
    t.match(ended, [['bad', reason]])
    t.ok(lines.some(line => line.includes('"plugin":"bad"') && line.includes('shop.thing')))
    const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
    t.same(await bad.query('select 1 as one'), [{ one: 1 }], 'it goes on with others')
  })
}

test('a statement in a transaction says why that was ended, also where it cannot even be sent any more', async t => {
  let ended = (): void => {}
  const isEnded = new Promise<void>(resolve => {
    ended = resolve
  })
  const postgres = await shop(t, {
    blockingLimitMs: 300,
    onEnded: () => {
      // PostgreSQL closes the connection meanwhile, and nobody here hears of it.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
      ended()
    }
  })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const holding = bad.transaction(async tx => {
    await bad.query('lock table shop.thing in share mode', undefined, tx)
    const waiting = postgres.for({ plugin: 'calm', kind: 'built-in' }).query(insert, [2])
    await isEnded
    await bad.query('select 1', undefined, tx).finally(() => waiting)
  })
  await t.rejects(holding, {
    message: /^its connection to the database was ended, as it kept shop\.thing locked/
  })
})

test('a plugin that keeps only itself waiting, or runs long while nobody waits, is not ended', async t => {
  const ended: unknown[] = []
  const postgres = await shop(t, { blockingLimitMs: 100, onEnded: (...args) => ended.push(args) })
  await postgres.query(
    'create schema x_own; create table x_own.row (n int); insert into x_own.row values (1)'
  )
  const own = postgres.for({ plugin: 'own', kind: 'third-party' })
  const update = 'update x_own.row set n = n + 1'
  const long = own.transaction(async tx => {
    await own.query(update, [], tx)
    await own.query('select pg_sleep(1.5)', [], tx)
  })
  await isSleeping(postgres)
  await own.query(update)
  await long
  t.same(await postgres.query('select n from x_own.row'), [{ n: 3 }])
  t.same(ended, [])
})

test('a statement waits for a lock only so long, and the error says who has it', async t => {
  const postgres = await shop(t, { lockTimeoutMs: 1_000, blockingLimitMs: 3_600_000 })
  const calm = postgres.for({ plugin: 'calm', kind: 'built-in' })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const outsider = await another(t, postgres)
  const holders = [
    [bad, /^the plugin "bad" keeps shop\.thing locked: try again, and turn that plugin off if this stays$/],
    [calm, /^another operation of the platform keeps shop\.thing locked: try again/],
    [
      outsider.for({ plugin: 'elsewhere', kind: 'third-party' }),
      /^the plugin "elsewhere" keeps shop\.thing locked: try again/
    ]
  ] as const
  for (const [holder, message] of holders)
    for (const lock of [
      'lock table shop.thing in access exclusive mode',
      'update shop.thing set name = null where id = 1'
    ]) {
      await holder.transaction(async tx => {
        await holder.query(lock, [], tx)
        const update = "update shop.thing set name = 'two' where id = 1"
        const expected = { status: 503, code: 'E_DATABASE_LOCKED', message }
        await t.rejects(postgres.query(update), expected, lock)
        await t.rejects(
          calm.transaction(async inner => await calm.query(update, [], inner)),
          expected
        )
      })
    }
})

test('another program that keeps something locked is named, in errors and in the log', async t => {
  const lines: string[] = []
  const postgres = await shop(t, {
    lockTimeoutMs: 4_500,
    log: pino({ level: 'warn' }, { write: line => void lines.push(line) })
  })
  const psql = new pg.Client({ connectionString: postgres.url, application_name: 'psql' })
  await psql.connect()
  t.teardown(async () => {
    await psql.end()
  })
  await psql.query('begin; lock table shop.thing')
  await t.rejects(postgres.query(insert, [2]), {
    code: 'E_DATABASE_LOCKED',
    message:
      /^another client of the database \("psql", process \d+\) keeps shop\.thing locked: try again, and end what that does/
  })
  t.equal(lines.filter(line => line.includes('psql')).length, 1)
})

test('a plugin whose connections all wait for a lock is not blamed for that: who has the lock is', async t => {
  const postgres = await shop(t, { shareWaitMs: 500, lockTimeoutMs: 20_000, blockingLimitMs: 3_600_000 })
  const calm = postgres.for({ plugin: 'calm', kind: 'built-in' })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await bad.transaction(async tx => {
    await bad.query('lock table shop.thing in access exclusive mode', [], tx)
    const waiting = Array.from({ length: 3 }, async (_, n) => await calm.query(insert, [n + 2]))
    void Promise.allSettled(waiting)
    await isWaiting(postgres, 3)
    t.match(await calm.query('select 1').catch((error: unknown) => error), {
      status: 503,
      code: 'E_DATABASE_BUSY',
      message:
        /in use.*, and none became free within 0\.5 seconds: 3 of those in use wait for a lock: the plugin "bad" keeps shop\.thing locked: try again, and turn that plugin off if this stays$/
    })
  })
})

test('when third-party plugins have all connections of their share in use, those that hold most are named', async t => {
  const postgres = await shop(t, { shareWaitMs: 300 })
  const end = new AbortController()
  const stopped = once(end.signal, 'abort')
  const hold = async (plugin: string, count: number) => {
    const statements = postgres.for({ plugin, kind: 'third-party' })
    return await Promise.all(
      Array.from(
        { length: count },
        async () =>
          await statements.transaction(async () => {
            await stopped
          })
      )
    )
  }
  const holding = [hold('one', 3), hold('two', 2), hold('three', 1)]
  const other = postgres.for({ plugin: 'other', kind: 'third-party' })
  t.match(await other.query('select 1').catch((error: unknown) => error), {
    code: 'E_DATABASE_BUSY',
    message:
      /^the third-party plugins together have all of their 6 database connections in use \(the plugin "one" 3, the plugin "two" 2, the plugin "three" 1\)/
  })
  end.abort()
  await Promise.all(holding)
})

test('a statement of a third-party plugin ends after some time, says so, and its connection serves again', async t => {
  const postgres = await shop(t, { thirdPartyStatementMs: 300 })
  const slow = postgres.for({ plugin: 'slow', kind: 'third-party' })
  await t.rejects(slow.query('select pg_sleep(3600)'), {
    message:
      /^the statement was cancelled, as it took longer than one of a plugin may.*set local statement_timeout/
  })
  t.same(await slow.query('select 1 as one'), [{ one: 1 }])
  await slow.transaction(async tx => {
    await slow.query('set local statement_timeout = 0', [], tx)
    await slow.query('select pg_sleep(0.6)', [], tx)
  })
})

test('what a plugin has under way is ended while it keeps all connections of the platform waiting', async t => {
  const postgres = await shop(t, { lockTimeoutMs: 60_000, blockingLimitMs: 3_600_000, shareWaitMs: 60_000 })
  await postgres.query('create schema x_bad')
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const holding = bad.query(lockAndSleep('x_bad')).catch(() => {})
  await isSleeping(postgres)
  const waiting = Array.from({ length: 6 }, async (_, n) => await postgres.query(insert, [n + 2]))
  await isWaiting(postgres, 6)
  postgres.cutOff('bad')
  await Promise.all(waiting)
  await holding
  t.same(await postgres.query('select count(*) from shop.thing'), [{ count: 7 }])
})

for (const holder of ['psql', 'p'] as const) {
  test(`a plugin that waits for a row before the platform does is not ended for it: ${holder}, which has the row, is behind it`, async t => {
    const ended: string[] = []
    const lines: string[] = []
    const postgres = await shop(t, {
      lockTimeoutMs: 20_000,
      blockingLimitMs: 300,
      onEnded: plugin => ended.push(plugin),
      log: pino({ level: 'warn' }, { write: line => void lines.push(line) })
    })
    const update = "update shop.thing set name = 'two' where id = 1"
    const p = postgres.for({ plugin: 'p', kind: 'third-party' })
    const q = postgres.for({ plugin: 'q', kind: 'third-party' })
    const psql = new pg.Client({ connectionString: postgres.url, application_name: 'psql' })
    await psql.connect()
    t.teardown(async () => await psql.end())
    const held = new AbortController()
    const end = new AbortController()
    const isHeld = once(held.signal, 'abort')
    const holding =
      holder === 'p'
        ? p.transaction(async tx => {
            await p.query(update, [], tx)
            held.abort()
            if (!end.signal.aborted) await once(end.signal, 'abort')
            await p.query('select 1', [], tx)
          })
        : psql.query(`begin; ${update}`).then(() => held.abort())
    const settled = holding.then(
      () => 'done',
      () => 'ended'
    )
    await isHeld
    const asked = q.query(update)
    await isWaiting(postgres)
    const behind = postgres.query(update)
    await isWaiting(postgres, 2)
    if (holder === 'psql') {
      await until(() => lines.some(line => line.includes('psql')), 'the one who has the row to be named')
      await psql.query('commit')
    }
    await asked
    await behind
    end.abort()
    t.equal(await settled, holder === 'p' ? 'ended' : 'done')
    t.same(ended, holder === 'p' ? ['p'] : [])
  })
}

test('how long this process did nothing does not count as time in which a plugin kept the platform waiting', async t => {
  const ended: string[] = []
  const postgres = await shop(t, {
    lockTimeoutMs: 20_000,
    blockingLimitMs: 1_500,
    onEnded: plugin => ended.push(plugin)
  })
  const { session } = postgres
  const query = session.query.bind(session)
  let looks = 0
  session.query = async <Row extends object>(...args: Parameters<typeof query>) => {
    const rows = await query<Row>(...args)
    if (args[0].includes('pg_blocking_pids') && rows.length > 0) looks++
    return rows
  }
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  const update = "update shop.thing set name = 'two' where id = 1"
  const waiting = await bad.transaction(async tx => {
    await bad.query(update, [], tx)
    const behind = postgres.query(update)
    await until(() => looks > 0, 'the wait to be seen')
    const seen = looks
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000)
    await until(() => looks > seen, 'it to be seen again')
    return { behind }
  })
  await waiting.behind
  t.same(ended, [])
})

test('a signal reaches only the transaction that it is meant for, and is not sent late', async t => {
  const postgres = await shop(t)
  const { locks, session } = postgres
  await session.connected()
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await bad.transaction(async tx => {
    const [row] = await bad.query<{ pid: number }>('select pg_backend_pid() as pid', [], tx)
    const pid = row?.pid ?? 0
    t.equal(await locks.signal(pid, 'terminate', '2020-01-01 00:00:00+00'), false)
    t.equal(await locks.signal(pid, 'terminate', null), false)
    t.same(await bad.query('select 1 as one', [], tx), [{ one: 1 }])
  })
  await session.close()
  await t.rejects(locks.signal(1, 'terminate'), { code: 'E_DATABASE_UNREACHABLE' })
})

test('a statement that does not want to wait for a lock gets the code of the server', async t => {
  const postgres = await shop(t)
  const calm = postgres.for({ plugin: 'calm', kind: 'built-in' })
  const bad = postgres.for({ plugin: 'bad', kind: 'third-party' })
  await bad.transaction(async tx => {
    await bad.query('select from shop.thing for update', [], tx)
    await t.rejects(calm.query('select from shop.thing for update nowait'), { code: '55P03' })
    await t.rejects(
      calm.transaction(async own => await calm.query('lock table shop.thing nowait', [], own)),
      { code: '55P03' }
    )
  })
})
