import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const index = `
import { definePlugin, kernel } from 'busbar/sdk'
export default definePlugin({
  id: 'notes',
  needs: { db: kernel.database, jobs: kernel.jobs, instance: kernel.instance },
  migrations: [{ name: '001-create', phase: 'expand', sql: \`
    create type $schema.colour as enum ('red');
    create table $schema.note (id int primary key, project_id uuid not null references projects.project (id) on delete restrict, colour $schema.colour, body text);
    create table $schema.tag (note_id int references $schema.note (id), name text);
    create view $schema.named as select id from $schema.note;
    create function $schema.one () returns int language sql as 'select 1'\` }],
  start: async ({ use }) => { await use.instance.directory(); await use.jobs.enqueue('later', {}, { runAt: new Date(Date.now() + 3_600_000) }); return use },
  jobs (job) { job({ name: 'later', run: async () => {} }) }
})`

interface Installed {
  readonly k: TestKernel
  readonly home: string
  readonly project: string
}

/** A plugin that has stored something, turned off again. */
async function install(t: Test): Promise<Installed> {
  const home = await mkdtemp(join(tmpdir(), 'busbar-purge-'))
  await mkdir(join(home, 'notes'))
  await writeFile(
    join(home, 'notes', 'plugin.json'),
    JSON.stringify({
      id: 'notes',
      version: '1.0.0',
      sdk: '^0.1.0',
      name: 'Notes',
      description: 'A test.',
      requires: { projects: '*' },
      grants: ['database', 'jobs', 'instance']
    })
  )
  await writeFile(join(home, 'notes', 'index.ts'), index)
  const k = await createTestKernel({ thirdParty: home })
  t.teardown(async () => {
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  const admin = await k.as.session()
  const project = (await admin.post('/api/projects', { name: 'Shop', slug: 'shop' })).body.id as string
  t.equal((await admin.post('/api/plugins/notes/enable')).status, 200)
  await k.query(
    `insert into x_notes.note select n, $1, 'red', 'text ' || n from generate_series(1, 1200) as n`,
    [project]
  )
  await k.query(`insert into x_notes.tag values (1, 'a')`)
  return { k, home, project }
}

const schemas = async (k: TestKernel): Promise<unknown> =>
  await k.query("select nspname from pg_namespace where nspname = 'x_notes'")
const stored = {
  schema: 'x_notes',
  tables: [
    { name: 'note', rows: 1200 },
    { name: 'tag', rows: 1 }
  ],
  jobs: 1,
  settings: true,
  files: true
}

test('what a plugin has stored is shown, and removed only while it is off, by an admin in a session, and dumped first', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  t.match(await admin.post('/api/plugins/notes/purge'), { status: 409, body: { code: 'E_PLUGIN_ON' } })
  t.equal((await admin.post('/api/plugins/notes/disable')).status, 200)
  t.equal((await (await k.as.token('write')).post('/api/plugins/notes/purge')).status, 403)
  t.equal((await (await k.as.session('member')).post('/api/plugins/notes/purge')).status, 403)
  t.match(await admin.post('/api/plugins/projects/purge'), {
    status: 409,
    body: { code: 'E_PLUGIN_ESSENTIAL' }
  })
  t.match(await admin.post('/api/plugins/nowhere/purge'), { status: 404, body: { code: 'E_PLUGIN_UNKNOWN' } })
  t.match(await admin.post('/api/plugins/kernel/purge'), { status: 404 })

  t.match(await admin.post('/api/plugins/notes/purge', { dry_run: true }), {
    status: 200,
    body: { id: 'notes', state: 'stopped', purge: { ...stored, dry_run: true, dump: null } }
  })
  t.same(await schemas(k), [{ nspname: 'x_notes' }], 'a preview removes nothing')

  const purged = await admin.post('/api/plugins/notes/purge')
  t.match(purged, {
    status: 200,
    body: { id: 'notes', state: 'installed', purge: { ...stored, dry_run: false, dump: String } }
  })
  t.same(await schemas(k), [])
  t.same(
    await k.query(
      "select from kernel.migration where plugin = 'notes' union all select from kernel.plugin where id = 'notes'"
    ),
    []
  )
  t.notOk(existsSync(join(k.state.directory, 'data', 'notes')))
  const lines = gunzipSync(await readFile(purged.body.purge.dump))
    .toString()
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  t.match(lines[0], { plugin: 'notes', schema: 'x_notes', migrations: [{ name: '001-create' }] })
  t.equal(lines.filter(({ table }) => table === 'note').length, 1200)
  t.match(lines[1], { table: 'note', row: { id: 1, colour: 'red', body: 'text 1' } })
  const [record] = await k.query(
    "select resource_id from kernel.audit_log where action = 'purge_plugin' and details ->> 'outcome' = 'success' order by created_at desc limit 1"
  )
  t.same(record, { resource_id: 'notes' })

  t.match(
    await admin.post('/api/plugins/notes/enable'),
    { status: 200, body: { state: 'running' } },
    'it begins anew'
  )
  t.same(await k.query('select * from x_notes.note'), [])
})

test('rows of a plugin whose code is gone hold a project until it is purged', async t => {
  const { k, home, project } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/notes/disable')
  await rm(join(home, 'notes'), { recursive: true })
  t.equal((await admin.delete(`/api/projects/${project}`)).status, 200)
  const isThere = async (): Promise<boolean> =>
    (await k.query('select from projects.project where id = $1', [project])).length > 0
  t.match(await admin.post('/api/plugins/notes/purge', { dry_run: true }), {
    status: 200,
    body: { reason: 'its code is gone', purge: stored }
  })
  t.ok(await isThere())
  t.match(await admin.post('/api/plugins/notes/purge'), { status: 200, body: { id: 'notes', purge: stored } })
  t.same(await schemas(k), [])
  t.ok(await until(async () => !(await isThere()), 'the removal goes on by itself', 30_000))
  t.match(await admin.post('/api/plugins/notes/purge'), { status: 404 })
})

test('what others depend on is not removed, and they are named', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/notes/disable')
  await k.query(
    'create schema x_other; create table x_other.remark (note_id int references x_notes.note (id)); create view x_other.seen as select id from x_notes.note'
  )
  t.match(await admin.post('/api/plugins/notes/purge'), {
    status: 409,
    body: { code: 'E_PLUGIN_PURGE', error: /x_other\.(remark|seen)/ }
  })
  t.match(
    (await admin.post('/api/plugins/notes/purge', { dry_run: true })).body.purge,
    stored,
    'all of it is still there'
  )
  await k.query('drop schema x_other cascade')
  t.equal((await admin.post('/api/plugins/notes/purge')).status, 200)
})

test('turning a plugin on brings back, if asked, what turning it off took along, and nothing else', async t => {
  const of = (id: string, requires: Record<string, string> = {}) => ({
    manifest: { id, requires },
    definition: definePlugin({ id, start: () => ({}) })
  })
  const k = await createTestKernel({
    inline: [of('base'), of('first', { base: '*' }), of('second', { first: '*' }), of('third', { base: '*' })]
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const states = async (): Promise<string[]> =>
    await Promise.all(
      ['base', 'first', 'second', 'third'].map(
        async id => (await admin.get(`/api/plugins/${id}`)).body.state as string
      )
    )
  await admin.post('/api/plugins/third/disable')
  await admin.post('/api/plugins/base/disable', { cascade: true })
  t.same(await states(), ['stopped', 'stopped', 'stopped', 'stopped'])
  await admin.post('/api/plugins/base/enable')
  t.same(await states(), ['running', 'stopped', 'stopped', 'stopped'], 'only what was named')
  await admin.post('/api/plugins/base/disable')
  t.equal((await admin.post('/api/plugins/base/enable', { cascade: true })).status, 200)
  t.same(await states(), ['running', 'running', 'running', 'stopped'], 'what was off before stays off')
  await admin.post('/api/plugins/base/disable', { cascade: true })
  await k.stop()
  const again = await createTestKernel({
    inline: [
      of('base'),
      of('first', { base: '*' }),
      of('second', { first: '*' }),
      of('third', { base: '*' })
    ],
    state: k.state
  })
  t.teardown(() => again.stop())
  await (await again.as.session()).post('/api/plugins/base/enable', { cascade: true })
  t.same(
    [...again.kernel.reconciler.entries.values()]
      .filter(({ id }) => ['first', 'second', 'third'].includes(id))
      .map(({ state }) => state.name),
    ['running', 'running', 'stopped'],
    'after a restart too'
  )
})
