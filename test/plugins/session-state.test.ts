import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText } from './third-party-kit.js'

test('a function of a plugin that sets things for its session keeps nobody from work', async t => {
  const { k, admin, change, write } = await installation(t)
  await write(
    'reports',
    `needs: { db: kernel.database }, start: ({ use }) => use,
    migrations: [{ name: '001-create', phase: 'expand', sql: \`create function $schema.report () returns int language plpgsql as $$ begin
      perform set_config('default_transaction_read_only', 'on', false);
      perform set_config('statement_timeout', '1ms', false);
      perform pg_advisory_lock(4242, pg_backend_pid());
      return 1; end $$\` }],
    routes (route) { ${routeText('reports', 'report', "async (_, { db }) => await db.sql('select $schema.report()')")} }`
  )
  t.match(await change('reports', 'enable'), { status: 200 })
  for (let n = 0; n < 12; n++) await admin.get('/api/x/reports/report')
  const made = await Promise.all(
    Array.from(
      { length: 12 },
      async (_, n) => await admin.post('/api/projects', { name: `P${n}`, slug: `p${n}` })
    )
  )
  for (const { status } of made) t.equal(status, 201)

  t.match(await change('reports', 'disable'), { status: 200 })
  t.match(await change('reports', 'enable'), { status: 200 })
  t.match(await admin.get('/api/x/reports/report'), { status: 200 }, 'and itself begins anew')
  t.same(
    await k.query(
      `select count(*) as held from pg_locks where locktype = 'advisory' and classid = 4242 and database = (select oid from pg_database where datname = current_database())`
    ),
    [{ held: 1 }]
  )
})

test('what a plugin has under way in the database ends when it is turned off, and others get its connections', async t => {
  const { k, admin, change, write } = await installation(t)
  const slow = (id: string) =>
    write(
      id,
      `needs: { db: kernel.database }, start: ({ use }) => use,
      routes (route) {
        ${routeText(id, 'sleep', "(_, { db }) => { for (let n = 0; n < 3; n++) db.sql('select pg_sleep(3600)').catch(() => {}); return {} }")}
        ${routeText(id, 'ask', "async (_, { db }) => await db.sql('select 1 as one')")}
      }`
    )
  for (const id of ['one', 'two', 'other']) {
    await slow(id)
    t.match(await change(id, 'enable'), { status: 200 })
  }
  t.match(await admin.get('/api/x/other/ask'), { status: 200 })
  for (const id of ['one', 'two']) t.match(await admin.get(`/api/x/${id}/sleep`), { status: 200 })
  const sleeping = async () =>
    (await k.query("select from pg_stat_activity where query like 'select pg_sleep%' and state = 'active'"))
      .length
  await until(async () => (await sleeping()) === 6, 'all connections to be in use')
  for (const id of ['one', 'two']) t.match(await change(id, 'disable'), { status: 200 })
  await until(async () => (await sleeping()) === 0, 'the statements to have ended')
  t.match(await admin.get('/api/x/other/ask'), { status: 200 })
  t.match(await change('one', 'enable'), { status: 200 })
  t.match(await admin.get('/api/x/one/ask'), { status: 200 })
})

test('a plugin that makes a trigger at its start which would fire in statements of the platform does not start', async t => {
  const { k, admin, change, write } = await installation(t)
  const made = `
    create table if not exists $schema.part (project_id uuid references projects.project (id) on delete cascade);
    create or replace function $schema.fired () returns trigger language plpgsql as $f$ begin
      perform set_config('default_transaction_read_only', 'on', false); return old; end $f$;
    create trigger fired after delete on $schema.part for each row execute function $schema.fired()`
  await write(
    'bad',
    `needs: { db: kernel.database },
    migrations: [{ name: '001-create', phase: 'expand', sql: 'create table $schema.mine (id int)' }],
    async start ({ use }) { await use.db.sql(\`${made}\`); return use }`
  )
  t.match(await change('bad', 'enable'), {
    status: 409,
    body: { error: /the trigger fired on x_bad\.part would run in statements of others/ }
  })
  t.match(await change('bad', 'disable'), { status: 200 })
  t.same(await k.query("select to_regclass('x_bad.part') as part"), [{ part: null }])
  const { body: project } = await admin.post('/api/projects', { name: 'P', slug: 'p' })
  t.match(await admin.delete(`/api/projects/${project.id}`), { status: 200 })
})
