import { once } from 'node:events'
import {
  allow,
  definePlugin,
  event,
  extensionPoint,
  kernel,
  type Migration,
  object,
  optional,
  service,
  Type
} from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { pluginOf, probe, probeManifest, slowRequests } from './probe.js'

const greeter = service<{ greet(name: string): Promise<string> }>('greeter.words')
const panels = extensionPoint<{ title: string }>('greeter.panels')
const greeted = event<{ name: string }>('greeter.greeted')
const notes: Migration = {
  name: '001-notes',
  phase: 'expand',
  sql: 'create table $schema.note (text text not null)'
}
const heard: string[] = []

const inline = [
  { manifest: probeManifest, definition: probe },
  {
    manifest: { id: 'greeter', grants: ['database', 'events'] },
    definition: definePlugin({
      id: 'greeter',
      needs: { db: kernel.database, events: kernel.events, panels },
      migrations: [notes],
      start: ({ use }) => ({
        use,
        greet: async (name: string) => {
          await use.db.transaction(async tx => {
            await use.events.emit(greeted, { name }, tx)
          })
          return `hello ${name}`
        }
      }),
      provides(provide, self) {
        provide(greeter, self)
      },
      routes(route) {
        route({
          method: 'GET',
          url: '/api/greeter/panels',
          summary: 'Panels',
          access: allow.public('a test'),
          handler: (_request, { use }) => ({ titles: use.panels.entries().map(({ value }) => value.title) })
        })
        route({
          method: 'GET',
          url: '/api/greeter/hello',
          summary: 'Hello',
          access: allow.public('a test'),
          handler: async (_request, self) => ({ text: await self.greet('you') })
        })
      }
    })
  },
  {
    manifest: { id: 'guest', requires: { greeter: '^0.1.0' } },
    definition: definePlugin({
      id: 'guest',
      needs: { greeter },
      start: ({ use }) => ({ greeter: use.greeter }),
      contributes(contribute) {
        contribute(panels, 'guest', { title: 'Guest' })
      },
      events(on) {
        on(greeted, ({ name }) => {
          heard.push(name)
        })
      },
      routes(route) {
        route({
          method: 'GET',
          url: '/api/guest/hello',
          summary: 'Hello',
          access: allow.public('a test'),
          handler: async (_request, self) => ({ text: await self.greeter.greet('guest') })
        })
      }
    })
  },
  {
    manifest: { id: 'visitor', optional: { greeter: '^0.1.0' } },
    definition: definePlugin({
      id: 'visitor',
      needs: { greeter: optional(greeter) },
      start: ({ use }) => ({ greeter: use.greeter }),
      routes(route) {
        route({
          method: 'GET',
          url: '/api/visitor/hello',
          summary: 'Hello',
          access: allow.public('a test'),
          handler: async (_request, self) => ({
            text: (await self.greeter.get()?.greet('visitor')) ?? 'nobody greets'
          })
        })
      }
    })
  },
  {
    manifest: { id: 'broken' },
    definition: definePlugin({
      id: 'broken',
      start: (): object => {
        throw new Error('I cannot')
      }
    })
  }
]

let k: TestKernel
const get = async (path: string) => await k.as.anonymous().get(path)
const admin = async () => await k.as.session()
const stateOf = async (id: string) => (await (await admin()).get(`/api/plugins/${id}`)).body

test('plugins start in dependency order and use each other', async t => {
  k = await createTestKernel({ inline })
  t.match((await get('/api/guest/hello')).body, { text: 'hello guest' })
  t.match((await get('/api/greeter/panels')).body, { titles: ['Guest'] })
})

test('one bad optional plugin stops nobody, and says why it does not run', async t => {
  t.match(await stateOf('broken'), { state: 'retrying', reason: 'I cannot', wanted: true })
  t.equal((await get('/healthz')).status, 200)
})

test('an event reaches who listens, after the commit', async t => {
  await until(() => heard.includes('guest'), 'the event')
  t.ok(heard.includes('guest'))
})

test('disabling a plugin that others need is refused with their names', async t => {
  const answer = await (await admin()).post('/api/plugins/greeter/disable')
  t.match(answer, { status: 409, body: { code: 'E_PLUGIN_NEEDED', dependents: ['guest'] } })
  t.match(await stateOf('greeter'), { state: 'running', dependents: ['guest'] })
})

test('with force the others wait for it, name it in their answers, and come back by themselves', async t => {
  t.match(await (await admin()).post('/api/plugins/greeter/disable', { force: true }), {
    status: 200,
    body: { state: 'stopped', wanted: false }
  })
  t.match(await stateOf('guest'), {
    state: 'blocked',
    reason: 'it needs "greeter", which is stopped',
    wanted: true
  })
  t.match(await get('/api/greeter/hello'), {
    status: 404,
    body: { error: 'the plugin "greeter" is off: an administrator can turn it on', code: 'E_PLUGIN_OFF' }
  })
  t.match(await get('/api/guest/hello'), { status: 404, body: { plugin: 'guest' } })
  t.match((await get('/api/visitor/hello')).body, { text: 'nobody greets' })
  t.match(await (await admin()).post('/api/plugins/greeter/enable'), {
    status: 200,
    body: { state: 'running' }
  })
  t.match((await get('/api/guest/hello')).body, { text: 'hello guest' })
  t.match((await get('/api/visitor/hello')).body, { text: 'hello visitor' })
})

test('with cascade the others are turned off too and stay off', async t => {
  t.equal((await (await admin()).post('/api/plugins/greeter/disable', { cascade: true })).status, 200)
  await (await admin()).post('/api/plugins/greeter/enable')
  t.match(await stateOf('guest'), { state: 'stopped', wanted: false })
  t.match((await get('/api/greeter/panels')).body, { titles: [] }, 'its contribution is gone')
  t.match(await (await admin()).post('/api/plugins/guest/enable'), { status: 200 })
  t.match((await get('/api/greeter/panels')).body, { titles: ['Guest'] })
})

test('what was chosen outlives a restart', async t => {
  await (await admin()).post('/api/plugins/visitor/disable')
  await k.stop()
  k = await createTestKernel({ inline, state: k.state })
  t.match(await stateOf('visitor'), { state: 'stopped' })
  t.match(await get('/api/visitor/hello'), { status: 404, body: { plugin: 'visitor' } })
  await (await admin()).post('/api/plugins/visitor/enable')
  t.equal((await get('/api/visitor/hello')).status, 200)
})

test('essential plugins refuse to be turned off, unknown ones are 404, a broken one says why', async t => {
  t.match(await (await admin()).post('/api/plugins/projects/disable', { force: true }), {
    status: 409,
    body: { code: 'E_PLUGIN_ESSENTIAL' }
  })
  t.match(await (await admin()).post('/api/plugins/nowhere/enable'), {
    status: 404,
    body: { code: 'E_PLUGIN_UNKNOWN' }
  })
  t.match(await (await admin()).post('/api/plugins/broken/enable'), {
    status: 409,
    body: { error: 'the plugin "broken" did not start: I cannot' }
  })
  t.match(await (await admin()).post('/api/plugins/Bad%20Name/enable'), { status: 400 })
  t.match(await (await admin()).post('/api/plugins/visitor/disable', { force: 'yes' }), {
    status: 400,
    body: { error: 'force must be a boolean' }
  })
})

test('requests under way finish when their plugin is turned off', async t => {
  const session = await admin()
  const slow = get('/api/probe/slow')
  await until(() => slowRequests.waiting === 1, 'a request that is under way')
  const off = session.post('/api/plugins/probe/disable')
  await until(async () => {
    const { status, body } = await get('/api/probe/echo')
    return status === 404 && body.plugin === 'probe'
  }, 'the refusal of new requests')
  slowRequests.release()
  t.match(await slow, { status: 200, body: { done: true } })
  t.match((await off).status, 200)
  await (await admin()).post('/api/plugins/probe/enable')
})

test('a stream of another plugin, and a socket, do not notice a toggle', async t => {
  const socket = await k.socket(await admin())
  socket.subscribe('probe')
  const response = await k.as.anonymous().open('/api/probe/events')
  let ended = false
  let ticks = 0
  response.on('data', () => {
    ticks++
  })
  response.on('close', () => {
    ended = true
  })
  for (let n = 0; n < 5; n++) {
    await (await admin()).post('/api/plugins/visitor/disable')
    await (await admin()).post('/api/plugins/visitor/enable')
  }
  const before = ticks
  t.ok(await until(() => ticks > before, 'it goes on'))
  t.notOk(ended)
  k.publish('probe', 'ping', 1)
  t.match(await socket.next(frame => frame.event === 'ping'), { channel: 'probe', data: 1 })
  response.destroy()
  await socket.close()
})

test('its own stream ends when a plugin is turned off, and a reload keeps the channel subscribed', async t => {
  const socket = await k.socket(await admin())
  socket.subscribe('probe')
  const response = await k.as.anonymous().open('/api/probe/events')
  response.resume()
  const closed = once(response, 'close')
  t.match(await (await admin()).post('/api/plugins/probe/reload'), {
    status: 200,
    body: { state: 'running' }
  })
  await closed
  k.publish('probe', 'ping', 2)
  t.match(await socket.next(frame => frame.data === 2), { event: 'ping' })
  await socket.close()
})

test('fifty toggles under load fail no request of anybody else', async t => {
  let stop = false
  let answered = 0
  const failures: unknown[] = []
  const load = Array.from({ length: 4 }, async () => {
    while (!stop) {
      const answer = await get('/api/probe/echo?n=1').catch((error: unknown) => error)
      if ((answer as { status?: number }).status === 200) answered++
      else failures.push(answer)
    }
  })
  for (let n = 0; n < 25; n++) {
    await k.disable('visitor')
    await k.enable('visitor')
  }
  stop = true
  await Promise.all(load)
  t.same(failures, [])
  t.ok(answered > 50)
})

test('toggles at once are done one after another', async t => {
  const answers = await Promise.all(
    Array.from(
      { length: 10 },
      async (_, n) => await (await admin()).post(`/api/plugins/visitor/${n % 2 === 0 ? 'disable' : 'enable'}`)
    )
  )
  t.same(
    answers.map(({ status }) => status),
    Array(10).fill(200)
  )
  t.match(await stateOf('visitor'), { state: 'running' })
})

test('a handler that rewrites its own declaration changes nothing', async t => {
  const spec = {
    method: 'GET' as const,
    url: '/api/rewriter/secret',
    summary: 'Secret',
    access: allow.token('write', { role: 'admin', project: 'none' }) as { kind: string; scope: string },
    handler: () => {
      Object.assign(spec.access, { kind: 'public', reason: 'rewritten', scope: 'metrics' })
      Object.assign(spec, { access: allow.public('rewritten') })
      return { ok: true }
    }
  }
  const own = await createTestKernel({ inline: [pluginOf('rewriter', [spec as never])] })
  t.equal((await (await own.as.token('write')).get('/api/rewriter/secret')).status, 200)
  t.equal((await own.as.anonymous().get('/api/rewriter/secret')).status, 401)
  t.equal((await (await own.as.token('read')).get('/api/rewriter/secret')).status, 403)
  await own.close()
})

test('settings are checked before they are kept, and a running plugin is reloaded with them', async t => {
  const definition = definePlugin({
    id: 'tuned',
    config: object({
      greeting: Type.String({ default: 'hello' }),
      times: Type.Integer({ default: 1, minimum: 1 })
    }),
    start: ({ config }) => ({ config }),
    routes: route => {
      route({
        method: 'GET',
        url: '/api/tuned/config',
        summary: 'Config',
        access: allow.public('a test'),
        handler: (_request, self) => self.config
      })
    }
  })
  const own = await createTestKernel({ inline: [{ manifest: { id: 'tuned' }, definition }] })
  const session = await own.as.session()
  const used = async () => (await own.as.anonymous().get('/api/tuned/config')).body
  t.same(await used(), { greeting: 'hello', times: 1 })
  t.match(await session.put('/api/plugins/tuned/config', { times: 0 }), {
    status: 400,
    body: { code: 'E_PLUGIN_CONFIG', error: /times/ }
  })
  t.match(await session.put('/api/plugins/tuned/config', { greeting: 'good day' }), {
    status: 200,
    body: { state: 'running', config: { greeting: 'good day' } }
  })
  t.same(await used(), { greeting: 'good day', times: 1 })
  await own.query(`update kernel.plugin set config = '{"times": "often"}' where id = 'tuned'`)
  await own.stop()
  const next = await createTestKernel({
    inline: [{ manifest: { id: 'tuned' }, definition }],
    state: own.state
  })
  t.match((await (await next.as.session()).get('/api/plugins/tuned')).body, {
    state: 'misconfigured',
    reason: 'times must be an integer'
  })
  t.match(await (await next.as.session()).put('/api/plugins/tuned/config', {}), {
    status: 200,
    body: { state: 'running' }
  })
  await next.close()
})

test('only admins see and change plugins, and only in a session may they change them', async t => {
  t.equal((await get('/api/plugins')).status, 401)
  t.equal((await (await k.as.session('member')).get('/api/plugins')).status, 403)
  t.equal((await (await k.as.token('read')).get('/api/plugins')).status, 200)
  t.match(await (await k.as.token('write')).post('/api/plugins/visitor/disable'), {
    status: 403,
    body: { code: 'E_SESSION_REQUIRED' }
  })
})

test('the platform stops', async () => {
  await k.close()
})
