import { createReadStream, existsSync, readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { createGunzip, gunzipSync } from 'node:zlib'
import { definePlugin } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { heldBytes } from '../../lab/garbage.js'

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

/** The rows of the tables `names` in what was dumped of a schema that is made by `sql`. */
async function dumped(t: Test, sql: string): Promise<{ rows: Record<string, unknown[]>; tables: unknown }> {
  const { k } = await install(t)
  const admin = await k.as.session()
  t.equal((await admin.post('/api/plugins/notes/disable')).status, 200)
  await k.query(sql)
  const { status, body } = await admin.post('/api/plugins/notes/purge')
  t.equal(status, 200)
  const rows: Record<string, unknown[]> = {}
  for (const line of gunzipSync(await readFile(body.purge.dump))
    .toString()
    .trim()
    .split('\n')
    .slice(1)) {
    const { table, row } = JSON.parse(line)
    rows[table] = [...(rows[table] ?? []), row]
  }
  t.same(await schemas(k), [])
  return { rows, tables: body.purge.tables }
}

test('every row is dumped once and whole, whatever its columns are called and whatever tables inherit', async t => {
  const { rows, tables } = await dumped(
    t,
    `create type x_notes.pair as (x int, y int);
    create table x_notes.scalar (id int, t text); insert into x_notes.scalar values (1, 'a');
    create table x_notes.composite (id int, secret text, t x_notes.pair); insert into x_notes.composite values (1, 'kept', (1, 2));
    create table x_notes.parent (id int); create table x_notes.child (more int) inherits (x_notes.parent);
    insert into x_notes.parent values (1); insert into x_notes.child values (2, 3);
    create table x_notes.part (id int) partition by range (id); create table x_notes.low partition of x_notes.part for values from (0) to (10);
    insert into x_notes.part values (5);
    create schema x_split; create table x_split.whole (id int) partition by range (id);
    create table x_notes.piece partition of x_split.whole for values from (0) to (10); insert into x_split.whole values (7);
    create table x_notes.odd ("table" int, "row" int, at int, bytes int, "it""s" int); insert into x_notes.odd values (1, 2, 3, 4, 5)`
  )
  t.match(rows, {
    scalar: [{ id: 1, t: 'a' }],
    composite: [{ id: 1, secret: 'kept', t: { x: 1, y: 2 } }],
    part: [{ id: 5 }],
    piece: [{ id: 7 }],
    odd: [{ table: 1, row: 2, at: 3, bytes: 4, 'it"s': 5 }]
  })
  t.same(rows.parent, [{ id: 1 }])
  t.same(rows.child, [{ id: 2, more: 3 }])
  t.notOk('low' in rows)
  const sizes = tables as Array<{ name: string; rows: number }>
  t.match(
    sizes.filter(({ name }) => ['parent', 'child'].includes(name)),
    [{ rows: 1 }, { rows: 1 }]
  )
})

test('large rows are dumped piece by piece, to a file that has its name only when it is whole', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/notes/disable')
  // Each is two pieces, and all of them are 72 MB.
  const ids = Array.from({ length: 6 }, (_, n) => n + 1)
  const repeats = 3_000_000
  await k.query(`create table x_notes.upload (id int, content text);
    insert into x_notes.upload select n, repeat('"é' || n, ${repeats}) from generate_series(1, ${ids.length}) as n`)
  const folder = join(k.state.directory, 'purged')
  const names = new Set<string>()
  const before = heldBytes()
  let most = 0
  const weigh = setInterval(() => {
    most = Math.max(most, heldBytes())
  }, 500)
  const watch = setInterval(() => {
    for (const name of existsSync(folder) ? readdirSync(folder) : []) names.add(name)
  }, 5)
  const { status, body } = await admin.post('/api/plugins/notes/purge')
  for (const timer of [weigh, watch]) clearInterval(timer)
  t.equal(status, 200)
  t.ok(most - before < 70e6, `${Math.round((most - before) / 1e6)} MB more`)
  t.match([...names][0], /\.part$/)
  t.same(await readdir(folder), [basename(body.purge.dump)])
  const lines = createInterface({ input: createReadStream(body.purge.dump).pipe(createGunzip()) })
  const dumpedIds: number[] = []
  for await (const line of lines) {
    const { table, row } = JSON.parse(line)
    if (table !== 'upload') continue
    dumpedIds.push(row.id)
    if (row.content !== `"é${row.id}`.repeat(repeats)) t.fail(`row ${row.id} is not whole`)
  }
  t.same(dumpedIds, ids)
})

test('what a purge that did not end has written is removed at the next start', async t => {
  const first = await createTestKernel({})
  const folder = join(first.state.directory, 'purged')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'notes-2026.jsonl.gz.part'), 'half')
  await writeFile(join(folder, 'notes-2025.jsonl.gz'), 'whole')
  await first.stop()
  const second = await createTestKernel({ state: first.state })
  t.teardown(() => second.close())
  t.same(await readdir(folder), ['notes-2025.jsonl.gz'])
})
