import { once } from 'node:events'
import { connect } from 'node:net'
import { createTestKernel, TestClient, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { takeAwayFromEngine } from '../../../lab/engine.js'
import { makeApplication } from '../../domains/test/lab.js'
import { all, record, rowsOf, Stream, stored } from './requests-lab.js'

takeAwayFromEngine()

const there = (k: TestKernel, client: TestClient): TestClient => new TestClient(k.url, client.credential)

test('who listens is told in every process, on the channels and as streams, with the id of the history', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const two = await createTestKernel({ state: k.state, environment: { BUSBAR_ROLE: 'api' } })
  t.teardown(() => two.stop())
  const admin = await k.as.session()
  const [shop, other] = [await makeApplication(admin), await makeApplication(admin)]
  const channel = `requests:${shop.id}`
  const sockets = [await k.socket(admin), await two.socket(there(two, admin))]
  for (const socket of sockets) {
    socket.subscribe('requests:all')
    socket.subscribe(channel)
  }
  const ofShop = [
    await Stream.open(admin, `${shop.path}/requests/stream`),
    await Stream.open(there(two, admin), `${shop.path}/requests/stream`)
  ]
  const ofAll = [
    await Stream.open(admin, `${all}/stream`),
    await Stream.open(there(two, admin), `${all}/stream`)
  ]
  await until(() => k.hasSubscribers(channel) && two.hasSubscribers(channel), 'both listen')
  record(k, { path: '/one', applicationId: shop.id })
  record(two, { path: '/two', applicationId: other.id })
  record(two, { path: '/none', applicationId: null })
  await stored(k, 3)
  for (const stream of ofAll) await stream.has(3)
  for (const stream of ofShop) await stream.has(1)
  const rows = await rowsOf(admin)
  for (const { events, answer, pings } of [...ofAll, ...ofShop]) {
    t.match(answer.headers, { 'content-type': 'text/event-stream' })
    t.equal(pings, 1, 'a comment at once')
    for (const { data } of events)
      t.same(
        data,
        rows.find(row => row.id === data.id),
        'a row of the history'
      )
  }
  for (const { paths } of ofShop) t.same(paths, ['/one'])
  for (const socket of sockets) {
    const frame = await socket.next(one => one.channel === channel)
    t.match(frame, { event: 'request', data: rows.find(row => row.path === '/one') })
    for (const path of ['/one', '/two', '/none'])
      await socket.next(one => one.channel === 'requests:all' && one.data.path === path)
    t.same(socket.frames.filter(one => one.channel === channel).length, 1)
  }
  for (const stream of [...ofAll, ...ofShop]) stream.close()

  await t.test('a channel is for who may read the history', async t => {
    const own = await makeApplication(admin)
    const stranger = await k.socket(await k.as.session('stranger'))
    const pinned = await k.socket(await k.as.token('read', { pins: [own.projectId] }))
    for (const [socket, name] of [
      [stranger, channel],
      [stranger, 'requests:all'],
      [pinned, 'requests:all'],
      [pinned, `requests:${other.id}`]
    ] as const) {
      socket.subscribe(name)
      const frame = await socket.next(one => one.channel === name)
      t.match(frame, { event: 'error', data: { error: 'access denied' } })
    }
    pinned.subscribe(`requests:${own.id}`)
    await until(() => k.hasSubscribers(`requests:${own.id}`), 'it listens')
    record(k, { path: '/own', applicationId: own.id })
    t.match(await pinned.next(({ event }) => event === 'request'), { data: { path: '/own' } })
  })

  await t.test('a reader who comes again gets what has come since, once', async t => {
    const own = await makeApplication(admin)
    const path = `${own.path}/requests/stream`
    const first = await Stream.open(admin, path)
    record(k, { path: '/a', applicationId: own.id })
    await first.has(1)
    first.close()
    const rest = Array.from({ length: 250 }, (_, n) => `/${n}`)
    record(k, { path: '/of-other', applicationId: other.id })
    record(k, ...rest.map(one => ({ path: one, applicationId: own.id })))
    const again = await Stream.open(there(two, admin), path, first.events[0]?.id)
    await again.has(250)
    record(k, { path: '/z', applicationId: own.id })
    await again.has(251)
    t.same(again.paths, [...rest, '/z'])
    again.close()
    for (const nonsense of ['x', '-1', '1.5', '999999999999', '', '1'.repeat(400)]) {
      const stream = await Stream.open(admin, path, nonsense)
      record(k, { path: '/n', applicationId: own.id })
      await stream.has(1)
      t.same(stream.paths, ['/n'])
      stream.close()
    }
  })

  await t.test('no more than 200 in a second are told on a channel, and the stream has all', async t => {
    const own = await makeApplication(admin)
    const socket = await k.socket(admin)
    socket.subscribe(`requests:${own.id}`)
    const stream = await Stream.open(admin, `${own.path}/requests/stream`)
    await until(() => k.hasSubscribers(`requests:${own.id}`), 'it listens')
    record(k, ...Array.from({ length: 2000 }, (_, n) => ({ path: `/${n}`, applicationId: own.id })))
    await stream.has(2000)
    t.ok(socket.frames.length <= 1200, `${socket.frames.length} of 2000 told`)
    stream.close()
  })

  await t.test('a stream ends with its application', async t => {
    const own = await makeApplication(admin)
    record(k, { path: '/own', applicationId: own.id }, { path: '/other', applicationId: other.id })
    const streams = [
      await Stream.open(admin, `${own.path}/requests/stream`),
      await Stream.open(there(two, admin), `${own.path}/requests/stream`)
    ]
    t.equal((await admin.delete(own.path)).status, 200)
    await k.runRemovalsNow()
    for (const stream of streams) await until(() => stream.isOver, 'it ends')
    await until(
      async () =>
        (await k.query('select from requests.request where application_id = $1', [own.id])).length === 0 &&
        (await k.query('select from applications.application where id = $1', [own.id])).length === 0,
      'the application is gone, with its requests'
    )
    t.ok((await rowsOf(admin, all, `?application_id=${other.id}`)).length > 0, 'those of others stay')
  })
})

test('what a process was not told of is found by itself, and a slow reader keeps nobody waiting', async t => {
  const clock = testClock()
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const stream = await Stream.open(admin, `${all}/stream`)
  const { port } = new URL(k.url)
  const slow = connect({ host: '127.0.0.1', port: Number(port) })
  slow.on('error', () => {})
  t.teardown(() => {
    slow.destroy()
  })
  await once(slow, 'connect')
  const credential = Object.entries(admin.credential).map(([name, value]) => `${name}: ${value}`)
  slow.write(
    `${[`GET ${all}/stream HTTP/1.1`, 'Host: localhost', 'Last-Event-ID: 0', ...credential].join('\r\n')}\r\n\r\n`
  )
  slow.pause()
  const size = 20_000
  await k.query(
    `with turn as (update requests.progress set last_position = $1 returning 1)
    insert into requests.request (position, id, hostname, method, path, status_code, latency_ms, recorded_at)
    select n, gen_random_uuid(), 'a', 'GET', repeat('x', 1000), 200, 1, now() from generate_series(1, $1) n, turn`,
    [size]
  )
  t.equal(stream.events.length, 0)
  await clock.advance(15_000)
  await stream.has(size)
  t.same(
    stream.events.map(({ id }) => id),
    Array.from({ length: size }, (_, n) => String(n + 1))
  )
  t.notOk(slow.destroyed)
  stream.close()
})
