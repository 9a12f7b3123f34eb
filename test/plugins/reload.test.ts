import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allow, definePlugin, maybe, object, Type } from 'busbar/sdk'
import { createTestKernel, type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

/** Third-party code runs in this process. */
const shared = globalThis as { starts?: number; stops?: number; hang?: boolean; failing?: boolean }

interface Version {
  readonly version?: string
  readonly access?: string
  readonly grants?: readonly string[]
  readonly requires?: object
  readonly sdk?: string
  readonly uses?: string
}

const codeOf = ({ access = "allow.public('a test')", version = '1.0.0', uses }: Version): string => `
import { allow, definePlugin, kernel, Type } from 'busbar/sdk'
export default definePlugin({
  id: 'versions',
  ${uses === undefined ? '' : `needs: { used: kernel.${uses} },`}
  start: async ({ onStop, signal }) => {
    globalThis.starts = (globalThis.starts ?? 0) + 1
    onStop(() => { if (signal.aborted) globalThis.stops += 1 })
    if (globalThis.hang) await new Promise(() => {})
    if (globalThis.failing) throw new Error('it cannot start')
    return {}
  },
  routes (route) {
    route({ method: 'GET', url: '/api/x/versions/own', summary: 's', access: ${access}, handler: () => ({ version: '${version}' }) })
  },
  channels (channel) { channel({ name: 'x:versions:news', summary: 's', events: { x: {} }, access: allow.token('read', { project: 'none' }) }) },
  health: () => globalThis.failing ? { status: 'degraded', reason: 'not well' } : { status: 'ok' }
})`

interface Installed {
  readonly k: TestKernel
  readonly home: string
  write(version: Version): Promise<void>
}

async function install(t: Test, first: Version = {}, more: object = {}): Promise<Installed> {
  Object.assign(shared, { starts: 0, stops: 0, hang: false, failing: false })
  const home = await mkdtemp(join(tmpdir(), 'busbar-reload-'))
  await mkdir(join(home, 'versions'))
  const write = async (given: Version): Promise<void> => {
    const { version = '1.0.0', grants = [], requires = {}, sdk = '^0.1.0' } = given
    await writeFile(
      join(home, 'versions', 'plugin.json'),
      JSON.stringify({ id: 'versions', version, sdk, name: 'v', description: 'A test.', grants, requires })
    )
    await writeFile(join(home, 'versions', 'index.ts'), codeOf(given))
  }
  await write(first)
  const k = await createTestKernel({ thirdParty: home, ...more })
  t.teardown(async () => {
    shared.hang = false
    await k.close()
    await rm(home, { recursive: true, force: true })
  })
  return { k, home, write }
}

test('a change is made once: a plugin that is reloaded, enabled or configured starts once each time', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/versions/enable')
  for (let n = 1; n <= 4; n++) t.equal((await admin.post('/api/plugins/versions/reload')).status, 200)
  // A change of its own comes after whatever follows those.
  t.equal((await admin.post('/api/plugins/versions/disable')).status, 200)
  t.equal(shared.starts, 5)
})

test('after a reload that failed, everything that is said and enforced is of the version that runs', async t => {
  const { k, write } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/versions/enable')
  const before = (await admin.get('/api/plugins/versions')).body
  const refused: ReadonlyArray<readonly [what: string, version: Version, reason: RegExp, failing?: boolean]> =
    [
      [
        'its start fails',
        { version: '2.0.0', access: 'allow.session({ role: "admin", project: "none" })' },
        /it cannot start/,
        true
      ],
      ['it is for another SDK', { version: '2.0.0', sdk: '^9.0.0' }, /written for SDK \^9/],
      [
        'what it requires is of another version',
        { version: '2.0.0', requires: { projects: '^9.0.0' } },
        /requires "projects" \^9\.0\.0, but/
      ],
      [
        'what it requires is not installed',
        { version: '2.0.0', requires: { nobody: '*' } },
        /which is not installed/
      ],
      [
        'it uses what was not granted',
        { version: '2.0.0', grants: ['database'], uses: 'database' },
        /not granted yet/
      ],
      ['its code is broken', { version: '2.0.0', access: 'nonsense(' }, /does not compile/]
    ]
  for (const [what, version, reason, failing = false] of refused) {
    await write(version)
    shared.failing = failing
    t.match(
      await admin.post('/api/plugins/versions/reload'),
      { status: 409, body: { code: 'E_PLUGIN_RELOAD', error: reason } },
      what
    )
    shared.failing = false
    const now = (await admin.get('/api/plugins/versions')).body
    t.same(now, before, `${what}: the record is that of before`)
    t.match(await k.as.anonymous().get('/api/x/versions/own'), { status: 200, body: { version: '1.0.0' } })
    await admin.post('/api/plugins/mail/disable')
    await admin.post('/api/plugins/mail/enable')
    t.equal(
      (await k.as.anonymous().get('/api/x/versions/own')).status,
      200,
      'other changes do not turn it off, or give it new rules'
    )
  }
  await write({ version: '2.0.0', access: 'allow.token("read", { project: "none" })' })
  t.equal((await admin.post('/api/plugins/versions/reload')).status, 200)
  const after = (await admin.get('/api/plugins/versions')).body
  t.equal(after.version, '2.0.0')
  t.ok(after.since > before.since, 'it runs since the reload')
  t.equal((await k.as.anonymous().get('/api/x/versions/own')).status, 401)
})

test('what a later version asks for is granted by turning the plugin off and on, and by nothing else', async t => {
  const requires = { mail: '*' }
  const { k, home, write } = await install(t, { requires })
  const admin = await k.as.session()
  await admin.post('/api/plugins/versions/enable')
  const runs = async (version: string): Promise<void> => {
    t.match(await k.as.anonymous().get('/api/x/versions/own'), { status: 200, body: { version } })
  }
  const asking = { version: '2.0.0', grants: ['database'], uses: 'database', requires }
  const unasked = /not granted yet/
  await write(asking)
  for (let n = 0; n < 2; n++) {
    t.match(await admin.post('/api/plugins/versions/reload'), { status: 409, body: { error: unasked } })
    t.match(await admin.put('/api/plugins/versions/config', {}), { status: 409, body: { error: unasked } })
    await runs('1.0.0')
    // Whoever turns on what runs consents to what it says of itself, and not to what lies in its folder.
    t.match(await admin.post('/api/plugins/versions/enable'), { status: 200, body: { version: '1.0.0' } })
  }
  const isOff = async (who: TestClient): Promise<void> => {
    t.match((await who.get('/api/plugins/versions')).body, { state: /retrying|failed/, reason: unasked })
  }
  t.equal((await admin.post('/api/plugins/mail/disable', { cascade: true })).status, 200)
  t.equal((await admin.post('/api/plugins/mail/enable', { cascade: true })).status, 200)
  await isOff(admin)
  await k.stop()
  const again = await createTestKernel({ thirdParty: home, state: k.state })
  t.teardown(() => again.stop())
  const later = await again.as.session()
  await isOff(later)
  t.equal((await later.post('/api/plugins/versions/disable')).status, 200)
  t.match(await later.post('/api/plugins/versions/enable'), { status: 200, body: { version: '2.0.0' } })
  t.match(await again.as.anonymous().get('/api/x/versions/own'), { body: { version: '2.0.0' } })
})

test('a degraded plugin stays so, with its reason, when its reload fails', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/versions/enable')
  shared.failing = true
  const before = (await admin.get('/api/plugins/versions')).body
  t.match(before, { state: 'degraded', reason: 'not well' })
  t.equal((await admin.post('/api/plugins/versions/reload')).status, 409)
  const entry = k.kernel.reconciler.entries.get('versions')
  t.match(entry?.state, { name: 'degraded', reason: 'not well', since: new Date(before.since) })
})

test('an error that the start of a version leaves behind is told after a reload as after it is turned on', async t => {
  const { k, home } = await install(t)
  const admin = await k.as.session()
  await writeFile(
    join(home, 'versions', 'index.ts'),
    `import { definePlugin } from 'busbar/sdk'
    export default definePlugin({ id: 'versions', start: async () => { await globalThis.inStart?.(); return {} } })`
  )
  await admin.post('/api/plugins/versions/enable')
  const within = globalThis as { inStart?: () => void }
  t.teardown(() => {
    delete within.inStart
  })
  within.inStart = () => {
    k.kernel.reconciler.noteUncaughtError('versions', new Error('left by its start'))
  }
  for (const change of ['reload', 'disable', 'enable', 'reload']) {
    await admin.post(`/api/plugins/versions/${change}`)
    if (change !== 'disable')
      t.match(
        (await admin.get('/api/plugins/versions')).body,
        { state: 'degraded', reason: /left by its start/ },
        change
      )
  }
  delete within.inStart
  await admin.post('/api/plugins/versions/reload')
  t.match((await admin.get('/api/plugins/versions')).body, { state: 'running', reason: null })
})

test('a version that does not come up is ended, and the one of before is not', async t => {
  const { k } = await install(t)
  const admin = await k.as.session()
  await admin.post('/api/plugins/versions/enable')
  shared.failing = true
  t.equal((await admin.post('/api/plugins/versions/reload')).status, 409)
  t.match(shared, { starts: 2, stops: 1 }, 'what it had opened is closed')
  shared.failing = false
  t.equal((await admin.post('/api/plugins/versions/reload')).status, 200)
  t.match(shared, { starts: 3, stops: 2 })
  t.equal((await admin.post('/api/plugins/versions/disable')).status, 200)
  t.match(shared, { starts: 3, stops: 3 })
})

test('settings with which a plugin does not start are not kept', async t => {
  const picky = {
    manifest: { id: 'picky' },
    definition: definePlugin({
      id: 'picky',
      config: object({ n: maybe(Type.Integer()) }),
      start: ({ config }) => {
        if (config.n === 13) throw new Error('not thirteen')
        return {}
      }
    })
  }
  const k = await createTestKernel({ inline: [picky] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  t.equal((await admin.put('/api/plugins/picky/config', { n: 7 })).status, 200)
  t.match(await admin.put('/api/plugins/picky/config', { n: 13 }), {
    status: 409,
    body: { error: /not thirteen/ }
  })
  t.match((await admin.get('/api/plugins/picky')).body, { config: { n: 7 }, state: 'running' })
})

test('what cannot be plugged in leaves the version of before plugged in, with its rules', async t => {
  let isNext = false
  let stops = 0
  const greedy = {
    manifest: { id: 'greedy' },
    definition: definePlugin({
      id: 'greedy',
      start: ({ onStop }) => {
        onStop(() => {
          stops++
        })
        return {}
      },
      channels(channel) {
        channel({
          name: 'greedy',
          summary: 's',
          events: { x: Type.Any() },
          access: isNext
            ? allow.token('read', { role: 'admin', project: 'none' })
            : allow.token('read', { project: 'none' })
        })
      },
      jobs(job) {
        job({ name: isNext ? 'next' : 'first', run: async () => {} })
      },
      schedules(schedule) {
        if (isNext) schedule({ name: 'hourly', cron: '0 * * * *', run: async () => {} })
      }
    })
  }
  const k = await createTestKernel({ inline: [greedy] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  isNext = true
  // Schedules come last: everything else of the new version is plugged in by then.
  await k.query('alter table kernel.schedule rename to schedule_gone')
  t.match(await admin.post('/api/plugins/greedy/reload'), { status: 409, body: { code: 'E_PLUGIN_RELOAD' } })
  await k.query('alter table kernel.schedule_gone rename to schedule')
  t.equal(stops, 1, 'what could not be is ended')
  t.ok(k.kernel.jobs.has('greedy', 'first'))
  t.notOk(k.kernel.jobs.has('greedy', 'next'))
  const member = await k.socket(await k.as.token('read', { user: 'member' }))
  member.subscribe('greedy')
  const heard = async (): Promise<boolean> => {
    k.publish('greedy', 'x', {})
    return member.frames.some(({ event }) => event === 'x')
  }
  t.ok(await until(heard, 'a frame is heard', 3_000), JSON.stringify(member.frames))
  t.equal((await admin.post('/api/plugins/greedy/reload')).status, 200)
  t.ok(k.kernel.jobs.has('greedy', 'next'))
  t.equal(stops, 2)
})

test('the port opens while a third-party plugin hangs in its start, and stopping does not wait for it', async t => {
  const { k, home } = await install(t)
  await (await k.as.session()).post('/api/plugins/versions/enable')
  await k.stop()
  shared.hang = true
  const startedAt = performance.now()
  const again = await createTestKernel({ thirdParty: home, state: k.state, unsettled: true })
  t.teardown(() => again.stop())
  const admin = await again.as.session()
  t.match((await admin.get('/api/plugins/versions')).body, { state: 'starting', wanted: true })
  t.match((await admin.get('/api/plugins')).status, 200, 'the list does not wait for it either')
  t.ok(
    performance.now() - startedAt < 15_000,
    `it served after ${Math.round(performance.now() - startedAt)} ms`
  )
  const stoppingAt = performance.now()
  await again.stop()
  t.ok(
    performance.now() - stoppingAt < 10_000,
    `it stopped after ${Math.round(performance.now() - stoppingAt)} ms`
  )
})
