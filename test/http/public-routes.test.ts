import { connect, type Socket } from 'node:net'
import { allow } from 'busbar/sdk'
import { createTestKernel, type TestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { AnonymousAuditLimit, anonymousAuditPolicy } from '../../core/audit/anonymous-audit-limit.js'
import { record } from '../../core/declarations/recorder.js'
import { pluginOf, probe, probeManifest } from '../kernel/probe.js'

/** What comes back until the connection ends; `feed` is sent again and again as long as it is open. */
async function speak(k: TestKernel, head: string, feed?: string): Promise<{ answer: string; sent: number }> {
  const socket: Socket = connect(k.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(head)
  let answer = ''
  let sent = 0
  socket.on('data', chunk => {
    answer += String(chunk)
  })
  const feeding =
    feed === undefined
      ? undefined
      : setInterval(() => {
          if (socket.writable) {
            socket.write(feed)
            sent += feed.length
          }
        }, 5)
  const late = setTimeout(() => {
    answer += 'THE SERVER SAYS NOTHING'
    socket.destroy()
  }, 15_000)
  await new Promise(resolve => socket.once('close', resolve))
  clearTimeout(late)
  clearInterval(feeding)
  return { answer, sent }
}

test('a public route reads 16 KiB at most: what is announced is refused unread, and what is not is cut while it comes', async t => {
  const k = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }] })
  t.teardown(() => k.close())
  await k.user('admin')
  const publicRoutes = k
    .routes()
    .filter(({ record: { access, body } }) => access.kind === 'public' && body !== 'none')
  t.ok(publicRoutes.length > 5)
  for (const {
    record: { method, url, bodyLimit }
  } of publicRoutes) {
    t.ok(bodyLimit <= 16_384, `${method} ${url}`)
    if (url === '/api/auth/setup') continue
    k.resetRateLimits()
    const head = `${method} ${url} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`
    const announced = await speak(k, `${head}Content-Length: 16385\r\n\r\n`)
    t.match(announced.answer, /^HTTP\/1\.1 413 /, url)
    const chunked = await speak(
      k,
      `${head}Transfer-Encoding: chunked\r\n\r\n`,
      `400\r\n${' '.repeat(1024)}\r\n`
    )
    t.match(chunked.answer, /^HTTP\/1\.1 413 /, `${url}, chunk by chunk`)
    t.ok(chunked.sent < 200_000, `${chunked.sent} bytes were sent`)
  }
  const token = await k.as.token('write')
  t.equal(
    (await token.post('/api/probe/things', { name: 'a', more: 'x'.repeat(100_000) })).status,
    201,
    'who has a credential may send more'
  )
})

test('what is refused before its body is read ends the connection instead of reading on', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  await k.user('admin')
  for (const [path, status] of [
    ['/api/nowhere', 404],
    ['/api/projects', 401]
  ] as const) {
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`
    for (const announced of ['Content-Length: 1000000', 'Transfer-Encoding: chunked']) {
      t.match(
        (await speak(k, `${head}${announced}\r\n\r\n`)).answer,
        new RegExp(`^HTTP/1\\.1 ${status} `),
        `${path} ${announced}`
      )
    }
  }
})

test('a public route that takes more says why', async t => {
  const route = {
    method: 'POST',
    url: '/api/big',
    summary: 'Big',
    access: allow.public('a test'),
    handler: () => null
  } as const
  const recorded = (bodyLimit: unknown) =>
    record(pluginOf('big', [{ ...route, bodyLimit } as never]).definition, { id: 'big', builtIn: true })
      .routes[0]?.bodyLimit
  t.throws(() => recorded(20_000), { message: /a public route that takes more than 16384 bytes says why/ })
  t.equal(recorded({ bytes: 20_000, reason: 'a signed webhook of a Git host' }), 20_000)
  t.equal(recorded(100), 100)
  t.equal(recorded(undefined), 16_384)
})

test('a public route without a budget of its own still has a ceiling for an address, and says nothing of it before', async t => {
  const k = await createTestKernel({
    clock: testClock(),
    inline: [{ manifest: probeManifest, definition: probe }]
  })
  t.teardown(() => k.close())
  const anyone = k.as.anonymous()
  for (let n = 0; n < 60; n++) {
    const { status, headers } = await anyone.post('/api/probe/nobody')
    if (status !== 204 || 'x-ratelimit-limit' in headers) t.fail(`${n}: ${status}`)
  }
  t.match(await anyone.post('/api/probe/nobody'), {
    status: 429,
    headers: { 'retry-after': /^\d+$/, 'x-ratelimit-limit': '60' }
  })
  t.equal((await anyone.get('/api/probe/echo')).status, 200)
})

test('the records of anonymous callers are bounded by address and in all', async t => {
  const clock = testClock()
  const budget = new AnonymousAuditLimit(clock)
  const admitted = (ips: readonly string[]) => ips.filter(ip => budget.admit(ip).isRecorded).length
  t.equal(
    admitted(Array.from({ length: 100 }, (_, n) => `2001:db8:1:2::${n.toString(16)}`)),
    anonymousAuditPolicy.perAddress,
    'an IPv6 network is one address'
  )
  t.equal(
    admitted(Array.from({ length: 5_000 }, (_, n) => `203.0.${n >> 8}.${n & 255}`)),
    anonymousAuditPolicy.inAll - anonymousAuditPolicy.perAddress
  )
  await clock.advance(3_600_001)
  t.same(budget.admit('203.0.113.1'), { isRecorded: true, unrecorded: 5_000 - 940 }, 'told once')
  t.same(budget.admit('203.0.113.1'), { isRecorded: true, unrecorded: 0 })
})
