import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText } from './third-party-kit.js'

const sqlRoute = (id: string): string =>
  `needs: { db: kernel.database }, start: ({ use }) => use.db,
   routes (route) { route({ method: 'POST', url: '/api/x/${id}/sql', summary: 's', access: open, schema: { body: object({ sql: Type.String() }) }, handler: async ({ body }, db) => ({ rows: await db.sql(body.sql) }) }) }`

test('what a third-party plugin does to a connection is not in force for whoever gets it next', async t => {
  const { k, write, change, admin } = await installation(t)
  await write('sly', sqlRoute('sly'))
  await change('sly', 'enable')
  const statements = [
    'set default_transaction_read_only = on',
    "select set_config('search_path', '', false)",
    'create temp table t (a int)',
    'select pg_advisory_lock(1)',
    'begin',
    'begin; insert into nowhere values (1)'
  ]
  for (const sql of statements) {
    for (let at = 0; at < 3; at++) await admin.post('/api/x/sly/sql', { sql })
    const found = await Promise.all(
      Array.from({ length: 8 }, async () =>
        k.query(
          "select current_setting('default_transaction_read_only') as ro, current_setting('search_path') as path, pg_my_temp_schema()::int as temp, now() = statement_timestamp() as fresh"
        )
      )
    )
    for (const [row] of found) t.match(row, { ro: 'off', path: '"$user", public', temp: 0, fresh: true }, sql)
  }
  const [locks] = await k.query(
    `select count(*)::int as count from pg_locks where locktype = 'advisory' and objid = 1 and classid = 0 and database = (select oid from pg_database where datname = current_database())`
  )
  t.match(locks, { count: 0 })
  t.match(await admin.post('/api/x/sly/sql', { sql: 'begin' }), { status: 500 })
})

test('the migrations of a third-party plugin', async t => {
  const { k, write, change } = await installation(t)
  const migrations = (...sql: readonly string[]): string =>
    `migrations: [${sql.map((text, at) => `{ name: '00${at + 1}', phase: 'expand', sql: ${JSON.stringify(text)} }`).join()}]`
  const [one, two] = ['create table $schema.one (a int)', 'create table $schema.two (a int)']

  await t.test('of an older version may run while a later one has only added', async t => {
    await write('older', migrations(one as string))
    t.match(await change('older', 'enable'), { status: 200 })
    await write('older', migrations(one as string, two as string, 'select 1/0'))
    t.match(await change('older', 'reload'), { status: 409, body: { error: /migration 003/ } })
    await write('older', migrations(one as string))
    t.match(await change('older', 'reload'), { status: 200 })
    await change('older', 'disable')
    t.match(await change('older', 'enable'), { status: 200, body: { state: 'running' } })
    await write('older', migrations(one as string, two as string))
    t.match(await change('older', 'reload'), { status: 200 })
    await write('older', migrations(one as string, `${two}; select 1`))
    t.match(await change('older', 'reload'), { status: 409, body: { error: /was changed after it had run/ } })
  })

  await t.test('of an older version are refused with what to do when a later one has taken away', async t => {
    const taking = migrations(one as string, 'alter table $schema.one drop column a')
    await write('taken', taking.replace(/expand(?!.*expand)/, 'contract'))
    t.match(await change('taken', 'enable'), { status: 200 })
    await write('taken', migrations(one as string))
    t.match(await change('taken', 'reload'), {
      status: 409,
      body: { error: /later version, which had the migration 002/ }
    })
    await change('taken', 'disable')
    t.match(await change('taken', 'enable'), { status: 409, body: { error: /later version.*purge/ } })
  })

  await t.test('need the grant of the database', async t => {
    await write('ungranted', migrations(one as string), { manifest: { grants: [] } })
    t.match(await change('ungranted', 'enable'), {
      status: 409,
      body: { error: /add "database" to "grants"/ }
    })
    await write('ungranted', '', { manifest: { grants: [] } })
    await change('ungranted', 'enable')
    await write('ungranted', migrations(one as string))
    t.match(await change('ungranted', 'reload'), { status: 409, body: { error: /not granted/ } })
  })

  await t.test(
    'that set something for the session, or end their transaction, do so for nobody else',
    async t => {
      await write('dumped', migrations(`select set_config('search_path', '', false); ${one}`))
      t.match(await change('dumped', 'enable'), { status: 200 })
      const paths = await Promise.all(Array.from({ length: 6 }, async () => k.query('show search_path')))
      for (const [row] of paths) t.match(row, { search_path: '"$user", public' })
      await write('ending', migrations(`${one}; commit`))
      t.match(await change('ending', 'enable'), { status: 409, body: { error: /ends the transaction/ } })
    }
  )

  await t.test('may make whatever PostgreSQL knows: a purge removes it', async t => {
    const kinds = [
      "create table $schema.t(a int); create function $schema.f(x $schema.t) returns int language sql as 'select 1'",
      'create view $schema.v as select 1 a; create materialized view $schema.m as select * from $schema.v',
      'create type $schema.r as range (subtype = int4); create table $schema.t (a $schema.r, b serial)',
      'create type $schema.c as (a int); create table $schema.t (a $schema.c)',
      "create function $schema.f(int) returns bool language sql immutable as 'select true'; create domain $schema.d as int check ($schema.f(value)); create table $schema.t (a $schema.d)",
      "create collation $schema.co (locale = 'C'); create text search configuration $schema.ts (copy = simple); create aggregate $schema.su(int) (sfunc = int4pl, stype = int)",
      'create table $schema.t (a int, b int) partition by range (a); create table $schema.t1 partition of $schema.t for values from (1) to (2); create statistics $schema.s on a, b from $schema.t'
    ]
    for (const [at, sql] of kinds.entries()) {
      const id = `kind-${at}`
      await write(id, migrations(sql))
      t.match(await change(id, 'enable'), { status: 200 }, sql)
      await change(id, 'disable')
      t.match(await change(id, 'purge'), { status: 200 }, sql)
    }
    t.same(await k.query("select nspname from pg_namespace where nspname like 'x_kind%'"), [])
  })
})

test('the jobs and schedules of one plugin leave workers and times to the others', async t => {
  const { write, change, admin } = await installation(t)
  await write(
    'victim',
    `start: () => ({ runs: 0 }), schedules (s) { s({ name: 'a', cron: '* * * * * *', run: async (_, self) => { self.runs++ } }) },
     routes (route) { ${routeText('victim', 'runs', '(_, self) => ({ runs: self.runs })')} }`
  )
  await change('victim', 'enable')
  const runs = async (): Promise<number> => (await admin.get('/api/x/victim/runs')).body.runs
  const goesOn = async (): Promise<boolean> => {
    const before = await runs()
    return await until(async () => (await runs()) >= before + 2, 'the schedule runs twice more')
  }
  t.ok(await goesOn())

  await write(
    'longkey',
    `needs: { s: kernel.schedules }, async start ({ use }) { await use.s.set('k'.repeat(190), { job: 'j', payload: {}, cron: '* * * * * *' }) }, jobs (j) { j({ name: 'j', run: async () => {} }) }`
  )
  t.match(await change('longkey', 'enable'), { status: 200 })
  t.ok(await goesOn(), 'beside a schedule with a long key')
  await change('longkey', 'disable')

  await write(
    'hanging',
    `needs: { jobs: kernel.jobs }, async start ({ use }) { for (let at = 0; at < 12; at++) await use.jobs.enqueue('h', { at }) }, jobs (j) { j({ name: 'h', timeoutMs: 1e12, run: () => new Promise(() => {}) }) }`
  )
  t.match(await change('hanging', 'enable'), { status: 200 })
  t.ok(await goesOn(), 'beside jobs that hang')
})
