import { once } from 'node:events'
import { createServer } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { pluginDatabase } from '../../core/database/plugin-database.js'
import { openPostgres, type Postgres } from '../../core/database/postgres.js'
import { another, freshPostgres, log } from './database-kit.js'

test('int8 and numeric are numbers, days are text, moments are dates', async t => {
  const postgres = await freshPostgres(t)
  const [row] =
    await postgres.query(`select 12::int8 as big, 1.5::numeric as exact, array[1, null, 3]::int8[] as bigs,
    '2026-01-31'::date as day, '2026-01-31T12:00:00.123Z'::timestamptz(3) as moment`)
  t.same(row, {
    big: 12,
    exact: 1.5,
    bigs: [1, null, 3],
    day: '2026-01-31',
    moment: new Date('2026-01-31T12:00:00.123Z')
  })
})

test('a moment is the same one in every time zone of the server, before Christ and without a fraction', async t => {
  const postgres = await freshPostgres(t, 1)
  const moments = [
    '2026-01-31T12:00:00.123Z',
    '2026-01-31T12:00:00.120Z',
    '2026-01-31T12:00:00.000Z',
    '1969-12-31T23:59:59.999Z',
    '0099-03-01T00:00:00.000Z',
    '1000-02-28T00:00:00.000Z',
    '9999-12-31T23:59:59.000Z'
  ]
  for (const zone of ['UTC', 'Europe/London', 'Asia/Kolkata', 'America/New_York']) {
    await postgres.query(`set time zone '${zone}'`)
    for (const moment of moments)
      t.same(
        await postgres.query(`select '${moment}'::timestamptz as moment`),
        [{ moment: new Date(moment) }],
        `${moment} in ${zone}`
      )
  }
  await postgres.query("set time zone 'UTC'")
  t.same(
    await postgres.query(
      `select '0044-03-15T12:00:00Z BC'::timestamptz as early, 'infinity'::timestamptz as never, '12026-01-01T00:00:00Z'::timestamptz as late`
    ),
    [
      {
        early: new Date('-000043-03-15T12:00:00.000Z'),
        never: Infinity,
        late: new Date('+012026-01-01T00:00:00.000Z')
      }
    ]
  )
})

test('a prepared statement reads rows as any other does: nulls, names in quotes, the last of two columns of a name', async t => {
  const postgres = await freshPostgres(t)
  const text = `select n, null::text as none, n * 2 as "a ""b"" \\ c", 'first' as twice, 'last' as twice, array[n] as list, '{"n": 1}'::jsonb as json,
    '2026-01-31T12:00:00Z'::timestamptz as at from generate_series(1, $1::int) as n`
  const prepared = postgres.statement<object, [number]>('reading', text)
  const plain = await postgres.query(text, [3])
  for (let n = 0; n < 3; n++) t.same(await prepared([3]), plain)
  t.same(Object.keys((await prepared([1]))[0] ?? {}), Object.keys(plain[0] ?? {}))
  t.equal(Object.getPrototypeOf((await prepared([1]))[0]), Object.prototype)
})

test('a number beyond 2^53 is refused instead of rounded, and the connection stays usable', async t => {
  const postgres = await freshPostgres(t, 1)
  const message =
    'the database answered 9007199254740993, which is beyond 2^53 and cannot be a number: select it as text'
  await t.rejects(postgres.query('select 9007199254740993::int8 as big'), { message })
  await t.rejects(postgres.query('select 9007199254740993::numeric as big'), { message })
  t.same(await postgres.query('select 9007199254740991::int8 as big'), [{ big: Number.MAX_SAFE_INTEGER }])
})

test('a value that cannot be sent is refused before there is a connection, which then serves others', async t => {
  const postgres = await freshPostgres(t, 1)
  const named = postgres.statement<{ t: string }, [unknown]>('sent', 'select $1::text as t')
  t.same(await named(['before']), [{ t: 'before' }])
  const self: { of?: unknown } = {}
  self.of = self
  for (const value of [{ big: 1n }, self, [{ big: 1n }]]) {
    await t.rejects(named([value]), TypeError)
    await t.rejects(postgres.query('select $1::text as t', [value]), TypeError)
    await postgres.transaction(async tx => {
      await t.rejects(named([value], tx), TypeError)
      t.same(await named(['inside'], tx), [{ t: 'inside' }])
    })
    t.same(await named(['after']), [{ t: 'after' }])
  }
  const bytes = Buffer.from([0, 1])
  t.same(
    await postgres.query(
      'select $1::bytea as b, $2::jsonb as j, $3::int8[] as n, $4::timestamptz as at, $5::text as none',
      [bytes, { a: [1] }, [1, 2], new Date(0), undefined]
    ),
    [{ b: bytes, j: { a: [1] }, n: [1, 2], at: new Date(0), none: null }],
    'and all else is sent as before'
  )
})

test('a plugin works in its own schema: knex, SQL text and prepared statements', async t => {
  const database = pluginDatabase(await freshPostgres(t), 'notes')
  await database.sql('create schema $schema')
  await database.sql('create table $schema.note (id int primary key, title text not null)')
  await database.table('note').insert([
    { id: 1, title: 'one' },
    { id: 2, title: 'two' }
  ])
  t.same(await database.table<{ id: number; title: string }>('note').where({ id: 2 }).first('title'), {
    title: 'two'
  })
  t.equal(await database.table('note').where({ id: 2 }).update({ title: 'zwei' }), 1)
  t.same(await database.table('note').insert({ id: 3, title: 'three' }).returning('id'), [{ id: 3 }])
  t.same(await database.sql('select title from $schema.note where id = ?', [2]), [{ title: 'zwei' }])
  t.same(await database.sql('select title from $schema.note where id = :id::int', { id: 1 }), [
    { title: 'one' }
  ])
  const byId = database.statement<{ title: string }, [number]>(
    'note-by-id',
    'select title from $schema.note where id = $1'
  )
  t.same(await byId([1]), [{ title: 'one' }])
  t.same(await byId([9]), [])
  t.throws(() => pluginDatabase(Object.create(null), 'drop"table'), {
    message: /cannot be the name of a schema/
  })
})

test('a transaction commits as a whole: knex, SQL, statements, and what was registered for afterwards', async t => {
  const postgres = await freshPostgres(t, 2)
  const database = pluginDatabase(postgres, 'bank')
  await database.sql(
    'create schema $schema; create table $schema.account (id int primary key, cents int not null)'
  )
  const add = database.statement<object, [number, number]>(
    'add',
    'insert into $schema.account values ($1, $2)'
  )
  const seen: string[] = []
  const answer = await database.transaction(async tx => {
    await Promise.all([
      add([1, 10], tx),
      database.table('account', tx).insert({ id: 2, cents: 20 }),
      database.sql('insert into $schema.account values (?, ?)', [3, 30], tx)
    ])
    t.same(await database.table('account'), [], 'nobody else sees it yet')
    database.afterCommit(tx, () => {
      seen.push('after')
    })
    t.same(seen, [])
    return 'answer'
  })
  t.equal(answer, 'answer')
  t.same(seen, ['after'])
  t.same(await database.sql('select sum(cents) from $schema.account'), [{ sum: 60 }])
})

test('a transaction that throws leaves nothing, gives its connection back, and its error is the one thrown', async t => {
  const postgres = await freshPostgres(t, 1)
  const database = pluginDatabase(postgres, 'bank')
  await database.sql('create schema $schema; create table $schema.account (id int primary key)')
  const mine = new Error('mine')
  let left: Parameters<Parameters<typeof database.transaction>[0]>[0] | undefined
  for (let n = 0; n < 3; n++) {
    await t.rejects(
      database.transaction(async tx => {
        left = tx
        database.afterCommit(tx, () => {
          t.fail('it was not committed')
        })
        await database.table('account', tx).insert({ id: 1 })
        throw mine
      }),
      mine
    )
  }
  t.same(await database.table('account'), [])
  const ended = left
  if (ended === undefined) throw new Error('no transaction')
  await t.rejects(database.sql('select 1', undefined, ended), { message: /this transaction has ended/ })
})

test('a transaction whose failed statement was swallowed says that nothing was stored', async t => {
  const database = pluginDatabase(await freshPostgres(t), 'public')
  await t.rejects(
    database.transaction(async tx => {
      await database.sql('select 1/0', undefined, tx).catch(() => {})
    }),
    { message: /the transaction was rolled back: a statement in it had failed/ }
  )
})

test('an error of PostgreSQL keeps its code and the connection, and says nothing of the values', async t => {
  const postgres = await freshPostgres(t, 1)
  const database = pluginDatabase(postgres, 'public')
  await database.sql('create table secret (name text primary key)')
  const backend = async () => await postgres.query('select pg_backend_pid() as pid')
  const before = await backend()
  await database.table('secret').insert({ name: 'hunter2' })
  const error: unknown = await database
    .table('secret')
    .insert({ name: 'hunter2' })
    .then(
      () => undefined,
      error => error
    )
  t.match(error, { code: '23505', constraint: 'secret_pkey' })
  t.notMatch(error instanceof Error && error.message, /hunter2|insert into/)
  t.same(await backend(), before, 'the same connection')
})

test('a connection is kept unless a statement has left something on it', async t => {
  const postgres = await freshPostgres(t, 1)
  const database = pluginDatabase(postgres, 'public')
  const backend = async (): Promise<unknown> =>
    (await postgres.query<{ pid: number }>('select pg_backend_pid() as pid'))[0]?.pid
  const named = postgres.statement('public.one', 'select 1 as one')
  await database.sql('create table weather (temp int primary key, unit text)')
  await database.sql("insert into weather values (1, 'temp'), (2, 'temporary')")

  const before = await backend()
  await database.sql('select temp from weather where unit = ?', ['temp'])
  await t.rejects(database.sql('update weather set temp = ?', [3]))
  await t.rejects(database.table('weather').where({ temp: 1 }).update({ temp: 2 }))
  await t.rejects(postgres.statement('public.set', 'update weather set temp = 3')([]))
  t.equal(await backend(), before)

  for (const sql of [
    'deallocate all',
    'deallocate all; commit; select 1 / 0',
    "do $$ begin execute 'se' || 't default_transaction_read_only = on'; end $$",
    'create table pg_temp.t (a int)',
    'create temporary  table t (a int)',
    'create temp/**/table t (a int)',
    'create local temporary view t as select 1',
    'select 1 as one into temp t',
    'select 1 as one into/**/temp t'
  ]) {
    await named([])
    await database.sql(sql).catch(() => {})
    t.same(await named([]), [{ one: 1 }], sql)
    t.match(
      await postgres.query(
        "select current_setting('default_transaction_read_only') as ro, pg_my_temp_schema()::int as temp"
      ),
      [{ ro: 'off', temp: 0 }],
      sql
    )
  }
})

test('a prepared statement survives a migration that changes its columns, and a namesake with another text', async t => {
  const postgres = await freshPostgres(t, 1)
  await postgres.query('create table thing (id int); insert into thing values (1)')
  const all = postgres.statement('public.all', 'select * from thing')
  t.same(await all([]), [{ id: 1 }])
  await postgres.query("alter table thing add column name text default 'x'")
  t.same(await all([]), [{ id: 1, name: 'x' }])
  t.same(await postgres.statement('public.all', 'select id from thing')([]), [{ id: 1 }])
})

test('connections that the server ends, idle or in use, are replaced without harm', async t => {
  const postgres = await freshPostgres(t, 3)
  const administrator = await openPostgres({ url: postgres.url, log })
  const slow = [
    postgres.query('select pg_sleep(30)'),
    postgres.transaction(async tx => {
      await postgres.query('select pg_sleep(30)', [], tx)
    })
  ]
  const outcomes = Promise.allSettled(slow)
  await postgres.query('select 1')
  const sleeping = async () =>
    await administrator.query(
      "select from pg_stat_activity where datname = current_database() and query like '%pg_sleep%' and wait_event = 'PgSleep'"
    )
  await until(async () => (await sleeping()).length === 2, 'both queries sleep')
  await administrator.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  )
  for (const outcome of await outcomes)
    t.match(outcome, { status: 'rejected', reason: { status: 503, code: 'E_DATABASE_UNREACHABLE' } })
  for (let n = 0; n < 5; n++) t.same(await postgres.query('select 1 as one'), [{ one: 1 }])
  t.same(await postgres.table('pg_catalog', 'pg_namespace').where({ nspname: 'public' }).select('nspname'), [
    { nspname: 'public' }
  ])
  await administrator.close()
})

test('a server that is away is a 503 with a remedy, for knex and SQL alike; an error of the caller stays what it is', async t => {
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  listener.close()
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  await t.rejects(openPostgres({ url, log }), {
    status: 503,
    code: 'E_DATABASE_UNREACHABLE',
    message: /PostgreSQL does not answer: .*DATABASE_URL/,
    cause: { code: 'ECONNREFUSED' }
  })

  const postgres = await freshPostgres(t)
  const foreign = Object.assign(new Error('the engine is away'), { code: 'ECONNREFUSED' })
  await t.rejects(
    postgres.transaction(async () => {
      throw foreign
    }),
    foreign
  )
})

test('a caller that gets no connection in time is told that the database is busy', async t => {
  const postgres = await freshPostgres(t, 1)
  await postgres.transaction(async () => {
    await t.rejects(postgres.query('select 1'), { status: 503, code: 'E_DATABASE_BUSY' })
  })
  t.same(await postgres.query('select 1 as one'), [{ one: 1 }])
})

test('a plugin that ends none of its transactions waits for itself, named, and nobody else does', async t => {
  const postgres = await freshPostgres(t, 8, { shareWaitMs: 200 })
  const greedy = postgres.for({ plugin: 'greedy', kind: 'built-in' })
  const hoarder = postgres.for({ plugin: 'hoarder', kind: 'third-party' })
  const end = new AbortController()
  const stopped = once(end.signal, 'abort')
  const open = [greedy, hoarder].flatMap(statements =>
    Array.from(
      { length: 10 },
      async () =>
        await statements.transaction(async () => {
          await stopped
        })
    )
  )
  const outcomes = Promise.allSettled(open)
  t.match(await greedy.query('select 1').catch((error: unknown) => error), {
    status: 503,
    code: 'E_DATABASE_BUSY',
    message: /^the plugins? ("greedy"|together)/
  })
  t.match(await hoarder.query('select 1').catch((error: unknown) => error), {
    status: 503,
    message: /^the plugin "hoarder" has all of its 3 /
  })
  t.same(await postgres.query('select 1 as one'), [{ one: 1 }], 'the kernel has its own')
  t.same(
    await postgres.for({ plugin: 'identity', kind: 'essential' }).query('select 1 as one'),
    [{ one: 1 }],
    'and so has what it cannot do without'
  )
  end.abort()
  const ended = (await outcomes).filter(({ status }) => status === 'fulfilled')
  t.equal(ended.length, 5 + 3, 'as many as the built-in plugins may hold together, and its own of the other')
  t.same(await greedy.query('select 1 as one'), [{ one: 1 }], 'what was held was given back')
  t.same(await hoarder.query('select 1 as one'), [{ one: 1 }])
})

for (const [who, kind, ask] of [
  ['the kernel', 'essential', (postgres: Postgres) => postgres.query('select 2')],
  [
    'another plugin',
    'third-party',
    (postgres: Postgres) => postgres.for({ plugin: 'other', kind: 'built-in' }).query('select 2')
  ]
] as const) {
  test(`a plugin passes connections on from one of its statements to the next, but not past ${who}`, async t => {
    const postgres = await freshPostgres(t, 6)
    const greedy = postgres.for({ plugin: 'greedy', kind })
    // To open a connection takes as long as it takes, and others go on meanwhile.
    await Promise.all(Array.from({ length: 3 }, async () => await ask(postgres)))
    let acquired = 0
    postgres.pool.on('acquire', () => acquired++)
    let done = 0
    const most = 5_000
    const loops = Array.from({ length: 12 }, async () => {
      while (done < most) {
        await greedy.query('select 1')
        done++
      }
    })
    await until(() => done > 500, 'the statements of a busy plugin')
    t.ok(acquired < done / 2, `${acquired} connections for ${done} statements`)
    await postgres.transaction(async () => {
      const before = done
      await ask(postgres)
      // Past it, it would be all that are left; some run while the server is at this one.
      t.ok(done - before < 2_000, `${done - before} statements came first`)
    })
    done = most
    await Promise.all(loops)
  })
}

test('a transaction may be passed to another plugin', async t => {
  const postgres = await freshPostgres(t)
  await postgres.query('create table shared (id int)')
  const other = postgres.for({ plugin: 'other', kind: 'third-party' })
  await postgres.for({ plugin: 'one', kind: 'built-in' }).transaction(async tx => {
    await other.query('insert into shared values (1)', [], tx)
  })
  t.same(await postgres.query('select * from shared'), [{ id: 1 }])
})

test('a transaction in which nothing is asked ends, says so, and its connection is free while its code still waits', async t => {
  const postgres = await freshPostgres(t, 2, { idleTransactionMs: 200, shareWaitMs: 5_000 })
  const idle = postgres.for({ plugin: 'idle', kind: 'third-party' })
  const end = new AbortController()
  const hanging = idle.transaction(async tx => {
    await once(end.signal, 'abort')
    await idle.query('select 1', [], tx)
  })
  const outcome = hanging.catch((error: unknown) => error)
  t.same(await idle.query('select 1 as one'), [{ one: 1 }], 'after it was ended')
  end.abort()
  t.match(await outcome, { message: /nothing was asked in it for too long/ })
})

test('closing waits a moment for what is under way and cuts off the rest', async t => {
  const { url } = await freshPostgres(t)
  const lines: string[] = []
  const postgres = await openPostgres({
    url,
    log: pino(
      { level: 'warn' },
      {
        write: line => {
          lines.push(line)
        }
      }
    )
  })
  const idle = postgres.for({ plugin: 'idle', kind: 'third-party' })
  const never = idle.transaction(async () => {
    await new Promise(() => {})
  })
  void never.catch(() => {})
  await idle.query('select 1')
  const startedAt = performance.now()
  await postgres.close()
  t.ok(performance.now() - startedAt < 8_000)
  t.ok(
    lines.some(line => line.includes('the plugin \\"idle\\": 1')),
    lines.join('')
  )
})

test('what DATABASE_URL says of connections does not take the place of what the platform says, and holds besides', async t => {
  const { url } = await freshPostgres(t)
  const more = new URLSearchParams({
    options: '-c work_mem=7MB -c busbar.schema=',
    application_name: 'psql',
    lock_timeout: '1',
    statement_timeout: '1',
    idle_in_transaction_session_timeout: '1',
    client_encoding: 'UTF8'
  })
  const postgres = await openPostgres({ url: `${url}${url.includes('?') ? '&' : '?'}${more}`, log })
  t.teardown(async () => await postgres.close())
  const settings = `select current_setting('application_name') as name, current_setting('lock_timeout') as lock,
    current_setting('statement_timeout') as statement, current_setting('idle_in_transaction_session_timeout') as idle,
    current_setting('work_mem') as memory, current_setting('busbar.schema', true) as schema`
  const all = { lock: '5s', idle: '30s', memory: '7MB' }
  t.match(await postgres.query(settings), [{ ...all, name: 'busbar', statement: '0', schema: '' }])
  const plugin = postgres.for({ plugin: 'p', kind: 'third-party', schema: 'x_p' })
  t.match(await plugin.query(settings), [
    { ...all, name: 'busbar plugin p', statement: '5min', schema: 'x_p' }
  ])
  await postgres.session.connected()
  t.match(await postgres.session.query(settings), [
    { name: 'busbar session', lock: '3s', statement: '0', memory: '7MB' }
  ])
})

test('what is set for the database or the role keeps nobody from writing, and isolates no transaction otherwise', async t => {
  const postgres = await freshPostgres(t)
  await postgres.query('create table thing (id int)')
  const set = (name: string, value: string): string =>
    `execute format('alter database %I set ${name} = ''${value}''', current_database())`
  await postgres.query(
    `do $$ begin ${set('default_transaction_read_only', 'on')}; ${set('default_transaction_isolation', 'serializable')}; end $$`
  )
  const next = await another(t, postgres)
  await next.query('insert into thing values (1)')
  await next.for({ plugin: 'p', kind: 'third-party', schema: 'x_p' }).query('insert into thing values (2)')
  await next.session.connected()
  t.same(
    await next.session.query(
      "insert into thing values (3) returning current_setting('transaction_isolation') as level"
    ),
    [{ level: 'read committed' }]
  )
})
