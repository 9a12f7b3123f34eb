import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allow, definePlugin, maybe, object, Type } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

/** Third-party code runs in this process. */
const shared = globalThis as { starts?: number; hang?: boolean; failing?: boolean }

interface Version {
  readonly version?: string
  readonly access?: string
  readonly grants?: readonly string[]
  readonly requires?: object
  readonly sdk?: string
  readonly uses?: string
}

const codeOf = ({ access = "allow.public('a test')", version = '1.0.0', uses }: Version): string => `
import { allow, definePlugin, kernel } from 'busbar/sdk'
export default definePlugin({
  id: 'versions',
  ${uses === undefined ? '' : `needs: { used: kernel.${uses} },`}
  start: async () => {
    globalThis.starts = (globalThis.starts ?? 0) + 1
    if (globalThis.hang) await new Promise(() => {})
    if (globalThis.failing) throw new Error('it cannot start')
    return {}
  },
  routes (route) {
    route({ method: 'GET', url: '/api/x/versions/own', summary: 's', access: ${access}, handler: () => ({ version: '${version}' }) })
  },
  channels (channel) { channel({ name: 'x:versions:news', summary: 's', events: ['x'], access: allow.token('read', { project: 'none' }) }) },
  health: () => globalThis.failing ? { status: 'degraded', reason: 'not well' } : { status: 'ok' }
})`

interface Installed {
  readonly k: TestKernel
  readonly home: string
  write(version: Version): Promise<void>
}

async function install(t: Test, first: Version = {}, more: object = {}): Promise<Installed> {
  Object.assign(shared, { starts: 0, hang: false, failing: false })
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
        'it uses what nobody has granted',
        { version: '2.0.0', grants: ['database'], uses: 'database' },
        /nobody has granted yet/
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
  let isLong = false
  const greedy = {
    manifest: { id: 'greedy' },
    definition: definePlugin({
      id: 'greedy',
      channels(channel) {
        channel({
          name: 'greedy',
          summary: 's',
          events: ['x'],
          access: isLong
            ? allow.token('read', { role: 'admin', project: 'none' })
            : allow.token('read', { project: 'none' })
        })
      },
      jobs(job) {
        job({ name: isLong ? 'n'.repeat(200) : 'short', run: async () => {} })
      }
    })
  }
  const k = await createTestKernel({ inline: [greedy] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  isLong = true
  t.match(await admin.post('/api/plugins/greedy/reload'), { status: 409, body: { error: /too long/ } })
  const member = await k.socket(await k.as.token('read', { user: 'member' }))
  member.subscribe('greedy')
  k.kernel.hub.publish('greedy', 'x', { n: 0 })
  const heard = async (): Promise<boolean> => {
    k.kernel.hub.publish('greedy', 'x', {})
    return member.frames.some(({ event }) => event === 'x')
  }
  t.ok(await until(heard, 'a frame is heard', 3_000), JSON.stringify(member.frames))
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
