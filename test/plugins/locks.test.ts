import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { installation, routeText } from './third-party-kit.js'

test('a plugin that locks projects and then takes long is ended and degraded, and the platform goes on', async t => {
  const { k, admin, change, write } = await installation(t)
  const lock =
    'create table $schema.part (project_id uuid references projects.project (id)); select pg_sleep(3600)'
  await write(
    'bad',
    `needs: { db: kernel.database }, start: ({ use }) => use, health: () => ({ status: 'ok' }),
    migrations: [{ name: '001-create', phase: 'expand', sql: 'create table $schema.mine (id int)' }],
    routes (route) { ${routeText('bad', 'lock', `(_, { db }) => { db.sql('${lock}').catch(() => {}); return {} }`)} }`
  )
  t.match(await change('bad', 'enable'), { status: 200, body: { state: 'running' } })
  t.match(await admin.get('/api/x/bad/lock'), { status: 200 })
  await until(
    async () =>
      (
        await k.query(
          "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
        )
      ).length > 0,
    'the table is locked'
  )
  const made = await Promise.all(
    Array.from(
      { length: 12 },
      async (_, n) => await admin.post('/api/projects', { name: `P${n}`, slug: `p${n}` })
    )
  )
  for (const { status } of made) t.equal(status, 201)
  t.match((await admin.get('/api/plugins/bad')).body, {
    state: 'degraded',
    reason: /^its connection to the database was ended, as it kept projects\.project locked/
  })
  await k.kernel.reconciler.checkHealth()
  t.match((await admin.get('/api/plugins/bad')).body, { state: 'degraded' }, 'whatever its own check says')
  t.match(await change('bad', 'reload'), { status: 200, body: { state: 'running' } })
})

test('a migration that locks projects and then takes long fails its plugin, and the platform goes on', async t => {
  const { k, admin, change, write } = await installation(t)
  await write(
    'mig',
    `migrations: [{ name: '001-create', phase: 'expand',
      sql: 'create table $schema.part (project_id uuid references projects.project (id)); select pg_sleep(3600)' }]`
  )
  const enabled = change('mig', 'enable')
  await until(
    async () =>
      (
        await k.query(
          "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
        )
      ).length > 0,
    'the table is locked'
  )
  t.match(await admin.post('/api/projects', { name: 'P', slug: 'p' }), { status: 201 })
  t.match(await enabled, {
    status: 409,
    body: { error: /keeps projects\.project locked until it ends: split it/ }
  })
})
