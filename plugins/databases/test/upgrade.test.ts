import { PassThrough } from 'node:stream'
import { containerRuntime } from 'busbar/api/containers'
import { until } from 'busbar/sdk/testing'
import Docker from 'dockerode'
import { test } from 'tap'
import { requireDatabaseImages } from '../../../lab/database-images.js'
import { createDatabase, type Lab, type Made, runIn, startLab, untilRunning } from './lab.js'

const upgradeMs = 420_000

/** A PostgreSQL 14 with two databases and a role, and what is asked of it. */
async function filled(lab: Lab) {
  const made = await createDatabase(lab, { type: 'postgres', version: '14' })
  const { body } = await lab.ann.get(`${made.path}/credentials/reveal`)
  const { user, password } = body.credentials as { user: string; password: string }
  const sql = async (text: string, database = 'shop') =>
    await runIn(
      lab.k,
      made.id,
      ['psql', '-h', '127.0.0.1', '-U', user, '-d', database, '-A', '-t', '-q', '-c', text],
      { PGPASSWORD: password }
    )
  await sql("create role reporter login password 'x1y2z3'")
  await sql('create table kept as select generate_series(1, 1000) as n; grant select on kept to reporter')
  await sql('create database "second one" owner reporter')
  await sql('create table also (n integer); insert into also values (7)', 'second one')
  return { made, sql }
}

async function untilUpgraded(lab: Lab, { path }: Made) {
  return await until(
    async () => {
      const { body } = await lab.ann.get(`${path}/upgrades`)
      return body[0]?.finished_at == null ? undefined : body[0]
    },
    'the upgrade to end',
    upgradeMs
  )
}

test('an upgrade brings everything to another major version', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const { made, sql } = await filled(lab)
  const runtime = k.service(containerRuntime)
  const volumes = async () => (await runtime.volumes({ databaseId: made.id })).map(({ name }) => name).sort()

  t.match(await sql('show server_version'), /^14/)
  t.match(await ann.post(`${made.path}/upgrade`, { target_version: '15' }), {
    status: 200,
    body: { status: 'upgrading' }
  })
  t.match(await ann.post(`${made.path}/upgrade`, { target_version: '15' }), { status: 409 })
  t.match(await ann.post(`${made.path}/stop`), { status: 409, body: { code: 'E_DATABASE_BUSY_NOW' } })
  const upgrade = await untilUpgraded(lab, made)
  t.match(upgrade, { phase: 'succeeded', from_version: '14', to_version: '15', error: null }, upgrade.log)
  await untilRunning(ann, made.path)
  t.match((await ann.get(made.path)).body, { version: '15', image: 'postgres:15' })
  t.match(await sql('show server_version'), /^15/)
  t.equal(await sql('select sum(n) from kept'), '500500')
  t.equal(await sql('select n from also', 'second one'), '7')
  t.equal(await sql("select has_table_privilege('reporter', 'kept', 'select')"), 't')
  t.equal((await volumes()).length, 2, 'the old volume is kept')
  t.ok(Date.parse(upgrade.kept_until) > Date.now() + 6 * 86_400_000)
  t.same(
    (await runtime.list({ databaseId: made.id })).map(({ name }) => name),
    [made.slug],
    'nothing stays beside it'
  )

  await t.test('which another database of the old version can be given by hand', async t => {
    const { credentials } = (await ann.get(`${made.path}/credentials/reveal`)).body
    const { user, password, database: database_name } = credentials
    const again = await createDatabase(lab, {
      name: 'again',
      type: 'postgres',
      version: '14',
      credentials: { user, password, database_name }
    })
    t.match(await ann.post(`${again.path}/stop`), { status: 200 })
    const docker = new Docker()
    const binds = [`${made.slug}-vol:/from:ro`, `${again.slug}-vol:/to`]
    const copy = 'rm -rf /to/* && cp -a /from/. /to/'
    const [{ StatusCode: code }] = await docker.run(
      'busybox:lab',
      ['sh', '-c', copy],
      new PassThrough().resume(),
      {
        HostConfig: { AutoRemove: true, Binds: binds }
      }
    )
    t.equal(code, 0)
    t.match(await ann.post(`${again.path}/start`), { status: 200 })
    const asked = async () =>
      await runIn(
        k,
        again.id,
        ['psql', '-h', '127.0.0.1', '-U', user, '-d', 'shop', '-A', '-t', '-c', 'select sum(n) from kept'],
        { PGPASSWORD: password }
      ).catch(() => '')
    await until(async () => (await asked()) === '500500', 'its server to answer with what was kept')
    t.equal((await ann.delete(again.path)).status, 200)
  })
  t.match(await ann.post(`${made.path}/upgrades/confirm`), { status: 200, body: { status: 'confirmed' } })
  t.equal((await volumes()).length, 1)
  t.match(await ann.post(`${made.path}/upgrades/confirm`), { status: 404 })

  await t.test('and to the same version, whose image is fetched anew', async t => {
    t.match(await ann.post(`${made.path}/upgrade`, { target_version: '14' }), { status: 400 })
    t.match(await ann.post(`${made.path}/upgrade`, { target_version: '15' }), { status: 200 })
    await until(async () => (await ann.get(`${made.path}/upgrades`)).body.length === 2, 'it to begin')
    const again = await untilUpgraded(lab, made)
    t.match(again, { phase: 'succeeded', from_version: '15', to_version: '15' }, again.log)
    await untilRunning(ann, made.path)
    t.match(await ann.post(`${made.path}/upgrades/confirm`), { status: 200 })
    t.equal((await volumes()).length, 1)
  })
  t.equal(await sql('select sum(n) from kept'), '500500')
})

test('an upgrade that fails leaves the old server whole', async t => {
  if (!(await requireDatabaseImages(t))) return
  const lab = await startLab(t)
  const { k, ann } = lab
  const { made, sql } = await filled(lab)
  const runtime = k.service(containerRuntime)

  await t.test('where there is no such image', async t => {
    await ann.post(`${made.path}/upgrade`, { target_version: '99' })
    const upgrade = await untilUpgraded(lab, made)
    t.match(upgrade, { phase: 'failed', error: /postgres:99/ })
  })

  await t.test('where what is in it cannot be restored', async t => {
    // Rows that were allowed when they came, and are not any more: found by the trial, before anything is stopped.
    await sql(`create function allowed() returns boolean language plpgsql immutable as
      $$ begin return coalesce(current_setting('lab.flag', true), '') = 'on'; end $$`)
    await sql(
      `set lab.flag = 'on'; create table guarded (n integer check (allowed())); insert into guarded values (1)`
    )
    const before = (await k.query<{ container_id: string }>('select container_id from databases.database'))[0]
    await ann.post(`${made.path}/upgrade`, { target_version: '15' })
    const upgrade = await untilUpgraded(lab, made)
    t.match(upgrade, { phase: 'failed', error: /violates check constraint/ }, upgrade.log)
    await untilRunning(ann, made.path)
    const after = (await k.query<{ container_id: string }>('select container_id from databases.database'))[0]
    t.same(after, before, 'it was never stopped')
    await sql('drop table guarded')
  })

  t.match((await ann.get(made.path)).body, { version: '14', status: 'running' })
  t.equal(await sql('select sum(n) from kept'), '500500')
  t.same(
    (await runtime.list({ databaseId: made.id })).map(({ name }) => name),
    [made.slug]
  )
  t.same(
    (await runtime.volumes({ databaseId: made.id })).map(({ name }) => name),
    [`${made.slug}-vol`]
  )
  const { body: told } = await ann.get('/api/notifications')
  t.ok(JSON.stringify(told).includes('database.upgrade_failed'))
})
