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
    await k.query("select count(*) as held from pg_locks where locktype = 'advisory' and classid = 4242"),
    [{ held: 1 }]
  )
})
