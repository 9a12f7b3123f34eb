import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { healthChecks } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { type Installation, installation, routeText } from './third-party-kit.js'

/**
 * Turns a plugin on, which must be refused with words that say why; then off. Another third-party plugin runs on, and
 * others can be changed as before: one of the platform's own, as those are not loaded in a thread first.
 */
async function refused(
  { write, change, admin }: Installation,
  members: string,
  more: Parameters<Installation['write']>[2] = {}
): Promise<string> {
  await write('faulty', members, more)
  const { status, body } = await change('faulty', 'enable')
  const listed = await admin.get('/api/plugins')
  const good = await admin.get('/api/plugins/good')
  await change('faulty', 'disable')
  const others = [await change('api-reference', 'disable'), await change('api-reference', 'enable')]
  const isFine =
    listed.status === 200 && good.body.state === 'running' && others.every(other => other.status === 200)
  return `${status}${isFine ? '' : ' and others suffer'}: ${body.error as string}`
}

test('what is wrong with a third-party plugin', async t => {
  const installed = await installation(t)
  const { k, home, admin, write, change } = installed
  await write('good', `routes (route) { ${routeText('good', 'a', '() => ({})')} }`)
  t.match(await change('good', 'enable'), { status: 200 })

  const canChange = async (id: string): Promise<boolean> =>
    (await change(id, 'disable')).status === 200 && (await change(id, 'enable')).status === 200

  await t.test('in its declarations is named when it is turned on, and no other plugin notices', async t => {
    const route = (more: string, url = '/api/x/faulty/a'): string =>
      `routes (route) { route({ method: 'POST', url: '${url}', summary: 's', access: open, handler: () => ({}), ${more} }) }`
    const cases: ReadonlyArray<readonly [members: string, fault: RegExp]> = [
      ['needs: { db: kernel.databse }', /needs\.db is no key/],
      ['routes (route) { route({}) }', /it has no url/],
      ['routes (route) { route() }', /routes: it declares undefined/],
      ['channels (channel) { channel({}) }', /it has no name/],
      ['events (on) { on(undefined, () => {}) }', /events: on\(undefined/],
      ['jobs: {}', /jobs is not a function/],
      ["jobs (job) { job({ name: 'a' }) }", /job a: it has no function run/],
      ["jobs (job) { job({ name: 'a', lane: 'huge', run: async () => {} }) }", /lane is short or long/],
      ["jobs (job) { job({ name: 'a', attempts: 1e6, run: async () => {} }) }", /attempts is a whole number/],
      ["schedules (s) { s({ name: 'a', cron: 5, run: async () => {} }) }", /cron and timeZone are text/],
      ["schedules (s) { s({ name: 'a', cron: '* * * * *', attempts: 0, run: async () => {} }) }", /attempts/],
      [
        "sockets (s) { for (const at of [1, 2]) s({ url: '/api/ws/x/faulty/a', access: open, summary: 's', handler: async () => {} }) }",
        /declared twice/
      ],
      [route('', '/api/x/faulty/:x('), /":x\(" in its path/],
      [route('', '/api/x/faulty/:x/:x'), /two parameters of one name/],
      [route('group: 5n'), /group is text/],
      [route("limit: { max: 'x', windowSeconds: 1 }"), /limit is/],
      [route('limitKey: () => undefined'), /limitKey is a function, of a public route with a limit/],
      [route('audit: { action: 5 }'), /audit is/],
      [route('schema: { body: Type.Unsafe({ type: "integer", default: 5n }) }'), /cannot be written as JSON/],
      [route('schema: { body: object({ a: Type.String({ example: "x" }) }) }'), /unknown keyword: "example"/],
      [route("schema: { body: object({ a: Type.String({ pattern: '(' }) }) }"), /schema of body/],
      [route("schema: { response: { 200: Type.Unsafe({ $ref: '#/nowhere' }) } }"), /schema of 200/],
      ["config: 'abc'", /schema of config is not valid/],
      [
        'config: (() => { const a = { type: "object", properties: {} }; a.properties.a = a; return a })()',
        /config/
      ],
      ['migrations: {}', /migrations is not a list/],
      ["migrations: [{ name: '001', phase: 'expand' }]", /migration 001 has no sql/],
      ['provides (provide) { provide(service("faulty.s"), undefined) }', /provides: it gives undefined/]
    ]
    for (const [members, fault] of cases) {
      const answer = await refused(installed, members)
      t.match(answer, /^409: /, members)
      t.match(answer, fault, members)
    }
    t.ok(await canChange('good'))
    t.equal((await admin.get('/api/openapi.json')).status, 200)
  })

  await t.test('in how it loads is named, and no other plugin notices', async t => {
    const post = "import { parentPort } from 'node:worker_threads'; parentPort?.postMessage"
    for (const said of ['null', "'hello'", '{ fault: null }'])
      t.match(
        await refused(installed, 'jobs: {}', { before: `${post}(${said})` }),
        /^409: .*jobs is not a function/
      )
    t.match(
      await refused(installed, '', {
        before: 'setTimeout(() => { throw null }, 1); await new Promise(resolve => setTimeout(resolve, 500))'
      }),
      /^409: .*(while loading|null)/
    )
    t.ok(await canChange('good'))
  })

  await t.test('in its folder is shown, and keeps nobody waiting', async t => {
    await mkdir(join(home, 'pipe'))
    await promisify(execFile)('mkfifo', [join(home, 'pipe', 'plugin.json')])
    for (const id of ['kernel', 'constructor']) await write(id, '')
    const { items } = (await admin.get('/api/plugins')).body as {
      items: Array<{ id: string; state: string; reason: string }>
    }
    const reasonOf = (id: string): string | undefined => items.find(item => item.id === id)?.reason
    t.match(reasonOf('pipe'), /not a file/)
    t.match(reasonOf('kernel'), /the kernel's/)
    t.match(reasonOf('constructor'), /the kernel's/)
    t.equal((await change('kernel', 'purge')).status, 404)
    t.ok((await k.query("select from kernel.migration where plugin = 'kernel'")).length > 0)
  })

  await t.test('in what it may use of others stops none that runs', async t => {
    await write('user', '', { manifest: { optional: { used: '^2.0.0' } } })
    t.match(await change('user', 'enable'), { status: 200 })
    await write('used', '', { manifest: { requires: { user: '*' } } })
    t.match(await change('good', 'reload'), { status: 200 })
    t.match((await admin.get('/api/plugins/user')).body, { state: 'running' })
    await write('used', '')
    t.match(await change('used', 'enable'), {
      status: 409,
      body: {
        code: 'E_PLUGIN_UNFIT',
        error: /would stop "user", which uses it in \^2\.0\.0 \(this is 1\.0\.0\)/
      }
    })
    t.match(
      (await admin.get('/api/plugins')).body.items.find((item: any) => item.id === 'used'),
      {
        state: 'installed'
      }
    )
    await write('used', '', { manifest: { version: '2.0.0', requires: { user: '*' } } })
    t.match(await change('used', 'enable'), { status: 200, body: { state: 'running' } })
    t.match((await admin.get('/api/plugins/user')).body, { state: 'running' })
    t.match(await change('user', 'disable', { cascade: true }), { status: 200 })
  })

  await t.test(
    'in a new version beside which what needs it would not run leaves the running one',
    async t => {
      await write('needed', '')
      await write('needing', '', { manifest: { requires: { needed: '^1.0.0' } } })
      t.match(await change('needed', 'enable'), { status: 200 })
      t.match(await change('needing', 'enable'), { status: 200 })
      await write('needed', '', { manifest: { version: '2.0.0' } })
      const refused = await change('needed', 'reload')
      t.not(refused.status, 200)
      t.match(JSON.stringify(refused.body), /needing\W+ would not run beside it: .*requires .*needed/)
      for (const id of ['needed', 'needing'])
        t.match((await admin.get(`/api/plugins/${id}`)).body, { state: 'running', version: '1.0.0' }, id)
    }
  )
})

test('a reload with the same code keeps what the plugin provides and contributes', async t => {
  const { k, write, change, admin } = await installation(t)
  await write(
    'steady',
    `provides: provide => { provide(key, implementation) }, contributes: contribute => { contribute(healthChecks, 'steady', check) }`,
    {
      before: `const key = service('steady.s'), implementation = { hi: async () => 'hi' }, check = { check: async () => 'fine' }`
    }
  )
  await change('steady', 'enable')
  t.match(await change('steady', 'reload'), { status: 200 })
  t.equal(k.kernel.registry.isProvided('steady.s'), true)
  t.same(k.kernel.registry.contributions(healthChecks).keys().includes('steady'), true)
  t.match(await change('steady', 'disable'), { status: 200 })
  t.equal(k.kernel.registry.isProvided('steady.s'), false)
  t.equal((await admin.get('/api/plugins')).status, 200)
})

test('a plugin that stops badly', async t => {
  const { k, write, change, admin } = await installation(t)

  await t.test('is given up after ten seconds, however much of it hangs', async t => {
    await write(
      'slow',
      'start ({ onStop }) { for (let at = 0; at < 5; at++) onStop(() => new Promise(() => {})) }'
    )
    await change('slow', 'enable')
    const before = performance.now()
    t.match(await change('slow', 'disable'), { status: 200 })
    t.ok(performance.now() - before < 25_000)
  })

  await t.test('uses nothing of the platform any more, and brings back nothing after its purge', async t => {
    await write(
      'leaking',
      `needs: { db: kernel.database, jobs: kernel.jobs, schedules: kernel.schedules, instance: kernel.instance },
      migrations: [{ name: '001', phase: 'expand', sql: 'create table $schema.t (a int)' }],
      start ({ use }) {
        setInterval(() => {
          const made = [use.db.sql('insert into $schema.t values (1)'), use.jobs.enqueue('a', {}), use.schedules.set('k', { job: 'a', payload: {}, cron: '0 0 1 1 *' }), use.instance.directory()]
          for (const one of made) one.then(() => globalThis.leaked.push('done'), error => globalThis.leaked.push(error.code))
        }, 20).unref()
      },
      jobs (job) { job({ name: 'a', run: async () => {} }) }`
    )
    const leaked: string[] = []
    Object.assign(globalThis, { leaked })
    await change('leaking', 'enable')
    t.ok(await until(() => leaked.includes('done'), 'it has leaked'))
    t.match(await change('leaking', 'disable'), { status: 200 })
    t.match(await change('leaking', 'purge'), { status: 200 })
    leaked.length = 0
    t.ok(await until(() => leaked.length >= 8, 'all that leaked has been tried'))
    t.same([...new Set(leaked)], ['E_PLUGIN_OFF'])
    t.match((await change('leaking', 'purge', { dry_run: true })).body.purge, {
      tables: [],
      jobs: 0,
      files: false
    })
  })

  await t.test('or is turned off while it waits for another, hears of no event any more', async t => {
    const listening = `events (on) { on(event('projects.deleted'), () => {}) }`
    await write('base', '')
    await write('listening', listening, { manifest: { requires: { base: '*' } } })
    await change('base', 'enable')
    await change('listening', 'enable')
    await change('base', 'disable', { force: true })
    await change('listening', 'disable')
    const project = await admin.post('/api/projects', { name: 'P', slug: 'p' })
    await admin.delete(`/api/projects/${project.body.id as string}`)
    const jobs = async (): Promise<number> =>
      (await k.query("select from graphile_worker.jobs where task_identifier like 'listening:%'")).length
    t.ok(
      await until(
        async () => (await admin.get(`/api/projects/${project.body.id as string}`)).status === 404,
        'the project is gone'
      )
    )
    t.equal(await jobs(), 0)
  })
})
