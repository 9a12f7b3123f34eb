/** What the kernel counts of itself, as the plugin gets it that shows it. */
import { connect } from 'node:net'
import { allow, definePlugin, kernel, type PlatformStatistics, sse } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

/** A plugin that hands out the figures, and has something to count. */
const probe = definePlugin({
  id: 'probe',
  needs: { statistics: kernel.statistics, db: kernel.database },
  start: ({ use }) => use,
  routes(route) {
    route({
      method: 'GET',
      url: '/api/probe/figures',
      access: allow.token('read', { project: 'none' }),
      summary: 'The figures',
      handler: async (_, { statistics }) => {
        const figures = await statistics.read()
        return JSON.parse(
          JSON.stringify(figures, (_key, value: unknown) =>
            value instanceof Map ? Object.fromEntries(value) : value
          )
        )
      }
    })
    route({
      method: 'GET',
      url: '/api/probe/stream',
      access: allow.token('read', { project: 'none' }),
      summary: 'A stream that stays open',
      produces: 'text/event-stream',
      handler: ({ signal }) =>
        sse(
          (async function* () {
            yield { data: 'hello' }
            await new Promise(resolve => signal.addEventListener('abort', resolve))
          })()
        )
    })
    route({
      method: 'GET',
      url: '/api/probe/waiting',
      access: allow.token('read', { project: 'none' }),
      summary: 'Holds a connection for as long as the caller waits',
      handler: async ({ signal }, { db }) =>
        await db.transaction(async () => {
          await new Promise(resolve => signal.addEventListener('abort', resolve))
        })
    })
  }
})

const grants = ['statistics', 'database'] as const

/** Maps have come through JSON, with their keys as texts. */
type Figures = Omit<PlatformStatistics, 'http'> & {
  readonly http: Omit<PlatformStatistics['http'], 'routes' | 'unrouted'> & {
    readonly routes: ReadonlyArray<{
      readonly method: string
      readonly route: string
      readonly seconds: number
      readonly durations: readonly number[]
      readonly answers: Record<string, number>
    }>
    readonly unrouted: Record<string, number>
  }
}

async function figuresOf(k: TestKernel): Promise<Figures> {
  k.resetRateLimits()
  return (await (await k.as.token('read')).get('/api/probe/figures')).body
}

test('the kernel tells its own figures to a built-in plugin', async t => {
  const k = await createTestKernel({
    inline: [{ manifest: { id: 'probe', grants: [...grants] }, definition: probe }]
  })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const answersOf = async (method: string, route: string) =>
    (await figuresOf(k)).http.routes.find(one => one.method === method && one.route === route)

  await t.test('requests are counted by the route that was declared, and by status', async t => {
    await admin.get('/api/projects/0b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d')
    await admin.get('/api/projects/1b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d')
    await k.as.anonymous().get('/api/projects/0b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d')
    const found = await answersOf('GET', '/api/projects/:projectId')
    t.match(found, { plugin: 'projects', answers: { 404: 2, 401: 1 } })
    t.equal(
      found?.durations.reduce((sum, count) => sum + count, 0),
      3
    )
    t.ok((found?.seconds ?? 0) > 0)
  })

  await t.test('what finds no route is counted apart, by status', async t => {
    const before = (await figuresOf(k)).http.unrouted[404] ?? 0
    await admin.get('/api/nothing-here')
    await admin.get('/api/nothing-there')
    t.equal((await figuresOf(k)).http.unrouted[404], before + 2)
  })

  await t.test('a client that goes away before the answer is counted as 499', async t => {
    const { credential } = await k.as.token('read')
    const socket = connect(k.port, '127.0.0.1')
    socket.write(
      `GET /api/probe/waiting HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${credential.authorization}\r\n\r\n`
    )
    await until(async () => k.inFlight('probe') > 0, 'the request is under way')
    const { database, http } = await figuresOf(k)
    t.match(
      database.plugins.find(({ plugin }) => plugin === 'probe'),
      { held: 1, limit: 6, waiting: 0 }
    )
    t.ok(http.underWay >= 2, 'with the one that asks')
    socket.destroy()
    await until(async () => (await answersOf('GET', '/api/probe/waiting'))?.answers[499] === 1, 'its end')
  })

  await t.test('event streams and sockets are counted while they are open', async t => {
    const stream = await admin.open('/api/probe/stream')
    stream.resume()
    const socket = await k.socket(admin)
    const open = await figuresOf(k)
    t.equal(open.http.eventStreams, 1)
    t.equal(open.bus.sockets, 1)
    t.ok(open.http.connections >= 2)
    stream.destroy()
    await socket.close()
    await until(async () => {
      const { http, bus } = await figuresOf(k)
      return http.eventStreams === 0 && bus.sockets === 0
    }, 'both are closed')
    const counted = await answersOf('GET', '/api/probe/stream')
    t.match(counted, { answers: { 200: 1 }, seconds: 0 }, 'its duration tells nothing')
  })

  await t.test('live messages are counted once, when they have a subscriber', async t => {
    const socket = await k.socket(admin)
    socket.subscribe('platform')
    await until(() => k.hasSubscribers('platform'), 'the subscription')
    const before = await figuresOf(k)
    k.publish('platform', 'update', { updating: true })
    k.publish('container-status:0b0e7a52-1c3d-4a5b-8c7d-9e0f1a2b3c4d', 'status', {})
    const { bus } = await figuresOf(k)
    t.equal(bus.published, before.bus.published + 1)
    t.match(bus, { dropped: 0, missed: 0, disconnected: 0 })
    await socket.close()
  })

  await t.test('pool, jobs and plugins are told as they are now', async t => {
    const { database, jobs, plugins, stalls } = await figuresOf(k)
    t.ok(database.pool.open >= 1 && database.pool.open <= database.pool.limit)
    t.equal(database.pool.waiting, 0)
    t.match(jobs, [
      { lane: 'short', pending: Number, active: Number, retry: Number, failed: Number },
      { lane: 'long' }
    ])
    t.same(
      plugins.find(({ id }) => id === 'probe'),
      { id: 'probe', isBuiltIn: true, state: 'running' }
    )
    t.same(stalls, { count: 0, seconds: 0 })
  })

  await t.test('what a plugin no longer serves is forgotten', async t => {
    await k.disable('audit-logs')
    t.notOk(await answersOf('GET', '/api/audit-logs'))
    await k.enable('audit-logs')
    await admin.get('/api/audit-logs')
    t.match(await answersOf('GET', '/api/audit-logs'), { answers: { 200: 1 } })
  })
})
