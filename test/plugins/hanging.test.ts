import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, type Scope, service } from 'busbar/sdk'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import tap, { type Test, test } from 'tap'

// All wait for limits that run out: beside each other.
tap.jobs = 3

const forever = async (): Promise<never> => await new Promise<never>(() => {})
const open = allow.public('a test')
const answers = service<{ ask(): Promise<string> }>('silent.answers')

let isSound = true
let stopsAtOnce = false

/** Each hangs in another place; every other place of it is sound. */
const hanging = {
  start: {
    manifest: { id: 'hanging-start' },
    definition: definePlugin({ id: 'hanging-start', start: async () => (isSound ? {} : await forever()) })
  },
  stop: {
    manifest: { id: 'hanging-stop' },
    definition: definePlugin({
      id: 'hanging-stop',
      start: ({ onStop }) => {
        for (let n = 0; n < 30; n++)
          onStop(async () => {
            if (!stopsAtOnce) await forever()
          })
        return {}
      }
    })
  },
  health: {
    manifest: { id: 'hanging-health' },
    definition: definePlugin({ id: 'hanging-health', start: () => ({}), health: async () => await forever() })
  },
  handler: {
    manifest: { id: 'silent' },
    definition: definePlugin({
      id: 'silent',
      start: () => ({ ask: async () => await forever() }),
      provides(provide, self) {
        provide(answers, self)
      },
      routes(route) {
        route({
          method: 'GET',
          url: '/api/silent',
          summary: 'Never',
          access: open,
          timeoutMs: 300,
          handler: async () => await forever()
        })
        const asks = { access: open, timeoutMs: 300, handler: () => ({}) }
        route({
          ...asks,
          method: 'GET',
          url: '/api/silent/key',
          summary: 'Never counted',
          limit: { max: 10, windowSeconds: 60 },
          limitKey: forever
        })
        route({
          ...asks,
          method: 'POST',
          url: '/api/silent/before',
          summary: 'Never begun',
          precondition: forever
        })
        // Longer than a plugin that is turned off has for its requests.
        route({
          ...asks,
          method: 'POST',
          url: '/api/silent/long-before',
          summary: 'Never begun either',
          timeoutMs: 600_000,
          precondition: forever
        })
      },
      sockets(socket) {
        socket({
          url: '/api/ws/silent',
          summary: 'Never accepted',
          access: allow.token('read', { project: 'none' }),
          accept: forever,
          handler: forever
        })
      }
    })
  },
  caller: {
    manifest: { id: 'patient', requires: { silent: '^0.1.0' } },
    definition: definePlugin({
      id: 'patient',
      needs: { answers },
      start: ({ use }) => ({ use }),
      routes(route) {
        route({
          method: 'GET',
          url: '/api/patient',
          summary: 'Never either',
          access: open,
          timeoutMs: 300,
          handler: async (_request, { use }) => ({ answer: await use.answers.ask() })
        })
      }
    })
  }
}

/** What the opening of the socket is answered. */
async function openingOf(client: TestClient): Promise<{ status: number; body: unknown }> {
  const asked = request(`${client.url}/api/ws/silent`, {
    headers: {
      ...client.credential,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ=='
    }
  }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  return { status: answer.statusCode ?? 0, body: await json(answer) }
}

/** Runs `change` while somebody else asks all the time; every answer must be good. */
async function unnoticed<T>(t: Test, k: TestKernel, change: () => Promise<T>): Promise<T> {
  const client = await k.as.token('read' satisfies Scope)
  const statuses = new Set<number>()
  let isOver = false
  const asking = (async () => {
    while (!isOver) {
      statuses.add((await client.get('/api/projects')).status)
      await sleep(500)
    }
  })()
  try {
    return await change()
  } finally {
    isOver = true
    await asking
    t.same([...statuses], [200], 'nobody else notices')
  }
}

test('a plugin that hangs', { buffered: true }, async t => {
  const k = await createTestKernel({
    inline: [hanging.stop, hanging.health, hanging.handler, hanging.caller]
  })
  t.teardown(async () => {
    stopsAtOnce = true
    await k.close()
  })
  const admin = await k.as.session()
  t.jobs = 5
  const beside = { buffered: true }

  void t.test(
    'in a handler, or in a service that a handler waits for, is answered for with 503',
    beside,
    async t => {
      for (const path of ['/api/silent', '/api/patient']) {
        t.match(await unnoticed(t, k, async () => await k.as.anonymous().get(path)), {
          status: 503,
          body: { code: 'E_TIMEOUT', error: /longer than 0\.3 s/ }
        })
      }
    }
  )

  void t.test('in what is asked before the body is answered for with 503 too', beside, async t => {
    const anonymous = k.as.anonymous()
    for (const answer of [anonymous.get('/api/silent/key'), anonymous.post('/api/silent/before', {})])
      t.match(await answer, { status: 503, body: { code: 'E_TIMEOUT', error: /longer than 0\.3 s/ } })
  })

  void t.test('where a socket is accepted is answered for with 503', beside, async t => {
    const client = await k.as.token('read')
    t.match(await openingOf(client), { status: 503, body: { code: 'E_TIMEOUT', error: /10 s/ } })
  })

  void t.test('in its health check is degraded, and says why', beside, async t => {
    await unnoticed(t, k, async () => {
      await k.checkHealth()
    })
    t.match((await admin.get('/api/plugins/hanging-health')).body, {
      state: 'degraded',
      reason: /its health check/
    })
  })

  void t.test('while it stops is left behind, and can be turned on again', beside, async t => {
    const begun = performance.now()
    t.match(await unnoticed(t, k, async () => await admin.post('/api/plugins/hanging-stop/disable')), {
      status: 200,
      body: { state: 'stopped' }
    })
    t.ok(performance.now() - begun < 20_000, 'however many of its functions hang')
    t.match(await admin.post('/api/plugins/hanging-stop/enable'), { status: 200, body: { state: 'running' } })
  })
})

test(
  'a plugin that hangs with requests under way is turned off all the same',
  { buffered: true },
  async t => {
    const k = await createTestKernel({ inline: [hanging.handler, hanging.caller] })
    t.teardown(() => k.close())
    const admin = await k.as.session()
    const waiting = k.as.anonymous().get('/api/patient')
    const before = k.as.anonymous().post('/api/silent/long-before', {})
    t.match(await admin.post('/api/plugins/silent/disable', { cascade: true }), {
      status: 200,
      body: { state: 'stopped' }
    })
    t.match(await waiting, { status: 503 })
    t.match(await before, { status: 503, body: { code: 'E_PLUGIN_STOPPING' } })
    t.match(await admin.post('/api/plugins/silent/enable'), { status: 200 })
  }
)

test(
  'a plugin whose start hangs keeps nobody from serving, and is tried again later',
  { buffered: true },
  async t => {
    const k = await createTestKernel({ inline: [hanging.start] })
    t.teardown(() => k.close())
    const admin = await k.as.session()
    t.match(await admin.post('/api/plugins/hanging-start/disable'), { status: 200 })
    isSound = false
    const answer = await unnoticed(t, k, async () => await admin.post('/api/plugins/hanging-start/enable'))
    t.match(answer, { status: 409, body: { error: /start took longer than 30 s/ } })
    t.match((await admin.get('/api/plugins/hanging-start')).body, { state: 'retrying', reason: /30 s/ })
    t.match(await admin.post('/api/plugins/hanging-start/disable'), { status: 200 })
  }
)
