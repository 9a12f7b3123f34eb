/** What the machine uses: live, as a stream, and over time. */
import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { openEvents } from './event-reader.js'

const point = {
  cpu_percent: Number,
  memory_used: Number,
  memory_total: Number,
  disk_used: Number,
  disk_total: Number,
  recorded_at: String
}

test('the machine of the platform', async t => {
  const clock = testClock('2026-01-31T12:00:00Z')
  const k = await createTestKernel({ clock })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const list = async (query = '') => (await admin.get(`/api/metrics/host${query}`)).body as any[]

  await t.test('admins hear of it once a second', async t => {
    const socket = await k.socket(admin)
    socket.subscribe('metrics:host')
    await until(() => k.hasSubscribers('metrics:host'), 'the subscription')
    await until(async () => {
      await clock.advance(1000)
      return socket.frames.length >= 3
    }, 'three messages')
    for (const frame of socket.frames)
      t.match(frame, {
        channel: 'metrics:host',
        event: 'metrics',
        data: { ...point, swap_used: Number, swap_total: Number }
      })
    const { cpu_percent: cpu, memory_used: used, memory_total: total } = socket.frames[0]?.data ?? {}
    t.ok(cpu >= 0 && cpu <= 100)
    t.ok(used > 0 && used < total)
    const times = socket.frames.map(({ data }) => Date.parse(data.recorded_at))
    const gaps = times.slice(1).map((time, at) => time - (times[at] ?? 0))
    t.ok(
      gaps.every(gap => gap > 0 && gap % 1000 === 0),
      String(gaps)
    )
    await socket.close()
  })

  await t.test('members do not, and get neither history nor stream', async t => {
    const member = await k.as.session('member')
    const socket = await k.socket(member)
    socket.subscribe('metrics:host')
    t.match(await socket.next(() => true), { event: 'error', data: { error: 'access denied' } })
    await socket.close()
    for (const path of ['/api/metrics/host', '/api/metrics/host/stream'])
      t.match(await member.get(path), { status: 403, body: { code: 'E_FORBIDDEN' } })
  })

  await t.test('a token of the scope metrics reads the stream, which begins with a ping', async t => {
    const events = await openEvents(await k.as.token('metrics'), '/api/metrics/host/stream')
    t.match(events.response.headers, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
    t.equal(events.text(), ': ping\n\n')
    await until(async () => {
      await clock.advance(1000)
      return events.data().length > 0
    }, 'a point')
    t.match(events.data()[0], { ...point, swap_total: Number })
    t.notMatch(events.text(), /^(id|event|retry):/m)
    events.close()
    await until(() => k.inFlight('metrics') === 0, 'the end of the stream')
  })

  await t.test('a stream ends with the token that it was opened with', async t => {
    const token = await k.as.token('metrics')
    const events = await openEvents(token, '/api/metrics/host/stream')
    const [{ id: tokenId }] = (await admin.get('/api/tokens')).body
    t.equal((await admin.delete(`/api/tokens/${tokenId}`)).status, 200)
    await until(() => events.hasEnded(), 'the end of the stream')
  })

  await t.test('what was measured is written soon, and read by the second', async t => {
    const from = clock.now().toISOString()
    const rows = await until(async () => {
      await clock.advance(1000)
      const found = await list(`?from=${from}`)
      return found.length >= 14 && found
    }, 'points of the last seconds')
    t.match(rows[0], point)
    t.notOk('swap_used' in rows[0])
    t.same(
      rows.map(({ recorded_at: at }) => at),
      rows.map(({ recorded_at: at }) => at).sort()
    )
    t.equal(new Set(rows.map(({ recorded_at: at }) => at)).size, rows.length)
    const answer = await admin.get(`/api/metrics/host?from=${from}&limit=3&offset=1`)
    t.same(
      answer.body.map(({ recorded_at: at }: { recorded_at: string }) => at),
      rows.slice(1, 4).map(({ recorded_at: at }) => at)
    )
    t.ok(Number(answer.headers['x-total-count']) >= 14)
  })

  await t.test('a range that is unknown, malformed or reversed is refused by name', async t => {
    for (const [query, field] of [
      ['range=2h', 'range'],
      ['from=yesterday', 'from'],
      ['to=2026-01-31', 'to'],
      ['from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z', 'from']
    ] as const)
      t.match(await admin.get(`/api/metrics/host?${query}`), { status: 400, body: { field, error: String } })
    t.same(await list('?from=2020-01-01T00:00:00Z&to=2020-01-01T00:00:00Z'), [])
  })

  await t.test('a long range has at most a thousand points, averages of their times', async t => {
    await k.query(`
      insert into metrics.host_point (step, recorded_at, cpu_percent, memory_used, memory_total)
      select 10, at, case when extract(second from at) < 30 then 20 else 40 end, 100, 200
      from generate_series(timestamptz '2026-01-30T13:00:00Z', '2026-01-31T11:00:00Z', interval '10 seconds') at`)
    const rows = await list('?from=2026-01-30T13:00:00Z&to=2026-01-31T11:00:00Z')
    t.ok(rows.length > 900 && rows.length <= 1000, String(rows.length))
    t.ok(rows.every(({ cpu_percent: cpu }) => cpu >= 20 && cpu <= 40))
    t.match(rows[0], {
      memory_used: 100,
      memory_total: 200,
      disk_used: null,
      recorded_at: '2026-01-30T13:00:00.000Z'
    })
    for (const range of ['1h', '6h', '24h', '7d', '14d']) t.ok((await list(`?range=${range}`)).length <= 1000)
  })

  await t.test('what is turned off and on goes on: subscriptions, and what is written', async t => {
    const socket = await k.socket(admin)
    socket.subscribe('metrics:host')
    await until(() => k.hasSubscribers('metrics:host'), 'the subscription')
    await k.disable('metrics')
    t.match(await admin.get('/metrics'), { status: 404, body: { code: 'E_PLUGIN_OFF', plugin: 'metrics' } })
    await k.enable('metrics')
    const heard = socket.frames.length
    const from = clock.now().toISOString()
    await until(async () => {
      await clock.advance(1000)
      return socket.frames.length > heard && (await list(`?from=${from}`)).length > 0
    }, 'messages and points')
    await socket.close()
  })
})
