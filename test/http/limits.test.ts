import { networkOf } from 'busbar/sdk'
import { createTestKernel, type TestAnswer, type TestKernel, testClock } from 'busbar/sdk/testing'
import { test } from 'tap'
import { maxWindows, RateLimiter } from '../../core/limits/rate-limiter.js'
import { probe, probeManifest } from '../kernel/probe.js'

let k: TestKernel
const three = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'] as const
const resetLimits = (): void => {
  k.resetRateLimits()
}

test('every answer to a token carries the three headers, whatever the answer is', async t => {
  k = await createTestKernel({
    inline: [{ manifest: probeManifest, definition: probe }],
    environment: { TRUST_PROXY: '127.0.0.1', CORS_ORIGINS: 'https://ui.example.com' }
  })
  const write = await k.as.token('write')
  const read = await k.as.token('read')
  const {
    body: { id }
  } = await write.post('/api/projects', { name: 'Shop', slug: 'shop' })
  const stranger = await k.as.token('read', { user: 'stranger' })
  const answers: ReadonlyArray<readonly [number, Promise<TestAnswer>]> = [
    [200, read.get('/api/projects')],
    [200, read.get('/api/audit-logs/export')],
    [201, write.post('/api/probe/things', { name: 'a' })],
    [400, write.post('/api/probe/things', { name: 5 })],
    [400, write.post('/api/probe/things', '{')],
    [400, read.get('/api/projects/nonsense')],
    [403, read.post('/api/probe/things', { name: 'a' })],
    [403, write.delete(`/api/projects/${id as string}`)],
    [403, stranger.get('/api/audit-logs')],
    [404, stranger.get(`/api/projects/${id as string}`)],
    [409, write.post('/api/projects', { name: 'Shop', slug: 'shop' })],
    [413, write.post('/api/probe/things', Buffer.alloc(2_000_000, 0x20))],
    [415, write.post('/api/probe/things', 'x', { headers: { 'content-type': 'text/plain' } })]
  ]
  for (const [status, answer] of answers) {
    const { status: got, headers } = await answer
    t.equal(got, status)
    for (const name of three) t.match(headers[name], /^\d+$/, `${status} ${name}`)
    t.equal(headers['x-ratelimit-limit'], '100')
  }
})

test('a session has a larger budget of its own, by user; tokens of that user do not eat of it', async t => {
  resetLimits()
  const session = await k.as.session()
  t.match((await session.get('/api/projects')).headers, {
    'x-ratelimit-limit': '600',
    'x-ratelimit-remaining': '599'
  })
  const token = await k.as.token('read')
  const before = Number((await session.get('/api/projects')).headers['x-ratelimit-remaining'])
  for (let n = 0; n < 5; n++) await token.get('/api/projects')
  t.equal(Number((await session.get('/api/projects')).headers['x-ratelimit-remaining']), before - 1)
  for (let n = 0; n < before; n++) await session.get('/api/probe/list')
  const over = await session.get('/api/projects')
  t.match(over, {
    status: 429,
    body: /^rate limit exceeded: 600 requests/,
    headers: { 'content-type': /^text\/plain/, 'x-ratelimit-remaining': '0', 'retry-after': /^\d+$/ }
  })
  t.equal((await token.get('/api/projects')).status, 200, 'nor the other way round')
})

test('all tokens of a user share a budget, so that more tokens are not more requests without end', async t => {
  // A thousand requests may take longer than the minute that they are counted in.
  const own = await createTestKernel({ clock: testClock() })
  const tokens = await Promise.all(
    Array.from({ length: 11 }, async (_, n) => {
      const session = await own.as.session('collector')
      const made = await session.post('/api/tokens', { name: `t${n}`, scopes: ['read'] })
      return `Bearer ${made.body.token as string}`
    })
  )
  const client = own.as.anonymous()
  const ask = async (authorization: string): Promise<TestAnswer> =>
    await client.get('/api/projects', { headers: { authorization } })
  for (const token of tokens.slice(0, 10)) {
    for (let n = 0; n < 100; n++) {
      const { status } = await ask(token)
      if (status !== 200) t.equal(status, 200)
    }
  }
  t.match(await ask(tokens[10] ?? ''), {
    status: 429,
    body: /^rate limit exceeded: 1000 requests by all your tokens; /
  })
  t.equal((await (await own.as.token('read', { user: 'other' })).get('/api/projects')).status, 200)
  await own.close()
})

test('turning plugins off and on gives nobody a fresh budget', async t => {
  resetLimits()
  const client = k.as.anonymous()
  const ask = async (): Promise<TestAnswer> =>
    await client.get('/api/probe/limited', { headers: { 'x-forwarded-for': '203.0.113.9' } })
  const token = await k.as.token('read')
  const left = async (): Promise<number> =>
    Number((await token.get('/api/projects')).headers['x-ratelimit-remaining'])
  await ask()
  await ask()
  const before = await left()
  await k.disable('probe')
  t.equal((await ask()).status, 404)
  await k.enable('probe')
  t.equal((await ask()).status, 429)
  t.equal(await left(), before - 1)
})

test('the addresses of one IPv6 network share a budget; one that is forwarded by an untrusted proxy counts for nothing', async t => {
  const client = k.as.anonymous()
  const from = async (ip: string): Promise<number> =>
    (await client.get('/api/probe/limited', { headers: { 'x-forwarded-for': ip } })).status
  resetLimits()
  t.same(
    [
      await from('2001:db8:1:2::1'),
      await from('2001:db8:1:2:ffff::2'),
      await from('2001:db8:1:2:3:4:5:6'),
      await from('2001:db8:1:3::1')
    ],
    [200, 200, 429, 200]
  )
  resetLimits()
  t.same(
    [await from('::ffff:203.0.113.5'), await from('203.0.113.5'), await from('203.0.113.5')],
    [200, 200, 429],
    'an IPv4 address is the same in either dress'
  )
  const untrusting = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }] })
  const outside = untrusting.as.anonymous()
  const asked = async (n: number): Promise<TestAnswer> =>
    await outside.get('/api/probe/limited', {
      headers: { 'x-forwarded-for': `203.0.113.${n}`, 'x-forwarded-proto': 'https' }
    })
  t.same(
    [(await asked(1)).status, (await asked(2)).status, (await asked(3)).status],
    [200, 200, 429],
    'without TRUST_PROXY the peer is the address'
  )
  t.match(
    (
      await outside.get('/api/probe/echo', {
        headers: { 'x-forwarded-for': '203.0.113.1', 'x-forwarded-proto': 'https' }
      })
    ).body,
    { ip: '127.0.0.1', secure: false }
  )
  await untrusting.close()
})

test('the network of an address is its first 64 bits', t => {
  const same = [
    ['2001:db8::1', '2001:0db8:0:0:ffff::'],
    ['::1', '0:0:0:0:0:0:0:2'],
    ['1:2::3:4:5:6:7', '1:2:0:3:0:0:0:1'],
    ['fe80::1%eth0', 'fe80::2'],
    ['2001:DB8::', '2001:db8::9']
  ] as const
  for (const [a, b] of same) t.equal(networkOf(a), networkOf(b), `${a} and ${b}`)
  const other = [
    ['2001:db8::1', '2001:db8:0:1::1'],
    ['1::', '::1'],
    ['1:2:3:4::', '1:2:3:5::']
  ] as const
  for (const [a, b] of other) t.not(networkOf(a), networkOf(b), `${a} and ${b}`)
  t.equal(networkOf('203.0.113.7'), '203.0.113.7')
  t.end()
})

test('a flood of addresses does not fill the memory, and what has ended is forgotten', async t => {
  const clock = testClock()
  const limiter = new RateLimiter(clock)
  for (let n = 0; n < maxWindows + 1_000; n++) limiter.take(`ip:${n}`, 5, 3_600_000)
  t.equal(limiter.size, maxWindows)
  t.equal(limiter.take(`ip:${maxWindows}`, 5, 3_600_000).remaining, 3, 'those that came last are counted on')
  await clock.advance(3_600_001)
  limiter.take('ip:new', 5, 60_000)
  t.equal(limiter.size, 1)
})

test('every public route that takes a secret has a budget by address', async t => {
  const guessable = k
    .routes()
    .map(({ record }) => record)
    .filter(
      ({ access, method, plugin }) => access.kind === 'public' && method !== 'GET' && plugin !== 'probe'
    )
  t.ok(guessable.length > 3)
  for (const { method, url, limit } of guessable)
    t.ok(limit !== undefined && limit.max <= 30, `${method} ${url}`)
})

test('a page of another origin gets no leave to read, and a preflight says what it may send', async t => {
  const client = k.as.anonymous()
  const preflight = await client.send('OPTIONS', '/api/projects', {
    headers: {
      origin: 'https://ui.example.com',
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'x-csrf-token'
    }
  })
  t.match(preflight, {
    status: 204,
    headers: {
      'access-control-allow-methods': /PATCH/,
      // Whoever follows a log comes again with the last.
      'access-control-allow-headers': /last-event-id.*x-csrf-token/,
      'access-control-max-age': /\d+/,
      vary: 'Origin'
    }
  })
  const read = await client.get('/api/version', { headers: { origin: 'https://ui.example.com' } })
  t.match(
    read.headers['access-control-expose-headers'],
    /content-disposition.*x-ratelimit-remaining.*x-total-count.*x-truncated/
  )
  t.not(read.headers['access-control-allow-origin'], '*')
  for (const origin of [
    'https://evil.example.com',
    'null',
    'https://ui.example.com.evil.com',
    'http://ui.example.com'
  ]) {
    const { headers, status } = await client.send('OPTIONS', '/api/projects', {
      headers: { origin, 'access-control-request-method': 'PUT' }
    })
    t.equal(status, 204)
    t.equal(headers['access-control-allow-origin'], undefined, origin)
    t.equal(headers['access-control-allow-methods'], undefined)
  }
})

test('a cookie is Secure as soon as the client is reached over TLS, and HSTS is sent when TLS_ENABLED says so', async t => {
  const { email, password } = await k.user('cookie')
  const signIn = async (kernel: TestKernel, headers: Record<string, string>): Promise<string[]> =>
    [
      (await kernel.as.anonymous().post('/api/auth/login', { email, password }, { headers })).headers[
        'set-cookie'
      ] ?? []
    ].flat()
  const overTls = await signIn(k, { 'x-forwarded-for': '203.0.113.30', 'x-forwarded-proto': 'https' })
  t.equal(overTls.length, 4)
  for (const cookie of overTls) t.match(cookie, /; SameSite=Lax(; HttpOnly)?; Secure$/)
  for (const cookie of await signIn(k, { 'x-forwarded-for': '203.0.113.31' })) t.notMatch(cookie, /Secure/)
  const strict = await createTestKernel({ environment: { SECURE_COOKIES: 'true', TLS_ENABLED: 'true' } })
  await strict.user('cookie')
  for (const cookie of await signIn(strict, {})) t.match(cookie, /; Secure$/)
  t.match(
    (await strict.as.anonymous().get('/api/version')).headers['strict-transport-security'],
    /max-age=\d{8}/
  )
  await strict.close()
  t.equal((await k.as.anonymous().get('/api/version')).headers['strict-transport-security'], undefined)
})

test('a body over the limit is refused before it is read, announced or not', async t => {
  const token = await k.as.token('write')
  const large = Buffer.alloc(1_048_577, 0x20)
  t.match(await token.post('/api/probe/things', large), { status: 413, body: { code: 'E_BODY_TOO_LARGE' } })
  t.match(
    await token.post(
      '/api/probe/things',
      Buffer.concat([Buffer.from('{"name":"a"}'), Buffer.alloc(1_048_576 - 12, 0x20)])
    ),
    { status: 201 },
    'a mebibyte is not too large'
  )
})

test('the platform stops', async () => {
  await k.close()
})
