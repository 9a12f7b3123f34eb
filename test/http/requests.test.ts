import { once } from 'node:events'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { createTestKernel, type TestKernel, testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { probe, probeManifest } from '../kernel/probe.js'

let k: TestKernel
test('a platform with a probe starts', async t => {
  k = await createTestKernel({
    inline: [{ manifest: probeManifest, definition: probe }],
    environment: { CORS_ORIGINS: 'https://ui.example.com', TRUST_PROXY: '127.0.0.1' }
  })
  t.ok(k.url)
})

test('an answer is written by its schema and holds nothing else', async t => {
  t.same((await k.as.anonymous().get('/api/probe/echo?n=7')).body, { n: 7, ip: '127.0.0.1', secure: false })
})

test('a list of any length comes whole, in its order, by its schema, and others are served meanwhile', async t => {
  for (const n of [0, 1, 100, 101, 250, 1000]) {
    const { status, body, headers } = await k.as.anonymous().get(`/api/probe/numbers?n=${n}`)
    t.equal(status, 200)
    t.same(
      body,
      Array.from({ length: n }, (_, at) => ({ n: at, name: null }))
    )
    t.equal(headers['x-total-count'], String(n))
    t.equal(headers['content-type'], 'application/json; charset=utf-8')
  }
  const order: string[] = []
  const long = k.as
    .anonymous()
    .get('/api/probe/numbers?n=200000')
    .then(() => {
      order.push('long')
    })
  await k.as
    .anonymous()
    .get('/api/probe/echo')
    .then(() => {
      order.push('short')
    })
  await long
  t.same(order, ['short', 'long'])
})

test('a query is coerced, and a wrong one is 400 naming the field', async t => {
  t.match(await k.as.anonymous().get('/api/probe/echo?n=seven'), {
    status: 400,
    body: { error: 'n must be an integer', code: 'E_QUERY_INVALID' }
  })
  t.match(await k.as.anonymous().get('/api/probe/echo?n=1&n=2'), {
    status: 400,
    body: { error: 'n is there more than once: give it once', code: 'E_QUERY_INVALID', field: 'n' }
  })
})

test('what is wrong with a parameter of a path is told with its name', async t => {
  const admin = await k.as.session('admin')
  t.match(await admin.get(`/api/plugins/${'a'.repeat(50)}`), {
    status: 400,
    body: { error: 'the pluginId must have at most 40 characters', field: 'pluginId' }
  })
})

test('a body is not coerced: null stays null, absent stays absent, unknown keys are dropped', async t => {
  const token = await k.as.token('write')
  t.match(await token.post('/api/probe/things', { name: 'a', size: null, extra: 1 }), {
    status: 201,
    body: { size: null, keys: ['name', 'size'] }
  })
  t.match(await token.post('/api/probe/things', { name: 'a' }), {
    status: 201,
    body: { size: -1, at: '2026-01-02T03:04:05.678Z' }
  })
  t.match(await token.post('/api/probe/things', { name: null }), {
    status: 400,
    body: { error: 'name must be a string' }
  })
  t.match(await token.post('/api/probe/things', { name: 5 }), {
    status: 400,
    body: { error: 'name must be a string', code: 'E_BODY_INVALID' }
  })
  t.match(await token.post('/api/probe/things', { name: 'a', size: '5' }), {
    status: 400,
    body: { error: 'size must be an integer or null' }
  })
  t.match(await token.post('/api/probe/things', { name: 'a', tags: [{}] }), {
    status: 400,
    body: { error: 'tags/0/key is required' }
  })
})

test('a body that is missing, no JSON, of another type or too large has its own answer', async t => {
  const token = await k.as.token('write')
  t.match(await token.post('/api/probe/things'), { status: 400, body: { error: 'name is required' } })
  t.match(
    await token.post('/api/probe/things', '', { headers: { 'content-type': 'application/json' } }),
    { status: 400, body: { error: 'name is required' } },
    'an empty body counts as a missing one'
  )
  t.match(await token.post('/api/probe/things', '{"name":'), {
    status: 400,
    body: { code: 'E_BODY_INVALID' }
  })
  t.match(await token.post('/api/probe/things', 'null'), {
    status: 400,
    body: { error: 'the body must be an object' }
  })
  t.match(await token.post('/api/probe/things', '{"__proto__":{"a":1},"name":"a"}'), { status: 400 })
  t.match(
    await token.post('/api/probe/things', 'name=a', {
      headers: { 'content-type': 'application/x-www-form-urlencoded' }
    }),
    { status: 415, body: { code: 'E_BODY_TYPE' } }
  )
  t.match(await token.post('/api/probe/things', { name: 'x'.repeat(2_000_000) }), {
    status: 413,
    body: { code: 'E_BODY_TOO_LARGE' }
  })
  t.match(await token.post('/api/probe/things', { name: 'a\u0000b' }), { status: 400 })
  t.match(await token.post('/api/probe/things', { name: 'x'.repeat(11) }), {
    status: 400,
    body: { error: 'name must have at most 10 characters' }
  })
})

test('a text that PostgreSQL could not keep is refused wherever it stands in a body', async t => {
  const token = await k.as.token('write')
  const post = async (body: string) => await token.post('/api/probe/things', body)
  for (const text of ['\\ud800', '\\udfff\\ud800', 'a\\u0000']) {
    t.match(
      await post(`{"name":"a","tags":[{"key":"${text}"}]}`),
      { status: 400, body: { code: 'E_BODY_INVALID', error: /NUL|characters/, field: 'tags/0/key' } },
      text
    )
    t.match(await post(`{"name":"${text}"}`), { status: 400, body: { field: 'name' } })
    t.equal((await post(`{"name":"a","unknown":"${text}"}`)).status, 201, 'what is dropped may hold anything')
  }
  t.equal((await post('{"name":"\\ud83d\\ude00"}')).status, 201, 'a whole pair is a character')
})

test('a body that no schema asks for is ignored, whatever it is', async t => {
  t.equal(
    (
      await k.as
        .anonymous()
        .post('/api/probe/nobody', 'not json', { headers: { 'content-type': 'text/strange' } })
    ).status,
    204
  )
})

test('a raw body comes as it was sent, up to its own limit', async t => {
  t.same((await k.as.anonymous().post('/api/probe/raw', Buffer.alloc(900))).body, { bytes: 900 })
  t.equal((await k.as.anonymous().post('/api/probe/raw', Buffer.alloc(1001))).status, 413)
})

test('an error that is not meant for the caller is 500 without a word of the inside', async t => {
  const { status, body } = await k.as.anonymous().get('/api/probe/throws')
  t.equal(status, 500)
  t.same(body, { error: 'something went wrong on our side; the log has the details', code: 'E_INTERNAL' })
})

test('a handler that takes too long is answered 503', async t => {
  t.match(await k.as.anonymous().get('/api/probe/never'), { status: 503, body: { code: 'E_TIMEOUT' } })
})

test('an unknown path is 404 and says so, and a broken encoding is 400', async t => {
  t.match(await k.as.anonymous().get('/api/nowhere?x=1'), {
    status: 404,
    body: {
      error: 'not found: there is no operation GET /api/nowhere; /api/docs has those there are',
      code: 'E_NOT_FOUND'
    }
  })
  t.match(await k.as.anonymous().get('/api/version/'), {
    status: 404,
    body: {
      error: 'not found: leave out the slash at the end, and ask for /api/version',
      code: 'E_NOT_FOUND'
    }
  })
  for (const anyone of [k.as.anonymous(), await k.as.token('read')])
    t.match(await anyone.get('/api/projects/'), {
      status: 404,
      body: { error: 'not found: leave out the slash at the end, and ask for /api/projects' }
    })
  const { body } = await k.as.anonymous().get(`/api/${'x'.repeat(5000)}`)
  t.ok(body.error.length < 400)
  t.match(await k.as.anonymous().get('/api/%zz'), { status: 400, body: { code: 'E_PATH_INVALID' } })
})

test('a condition on a change is refused by its name, as nothing would keep to it', async t => {
  const token = await k.as.token('write')
  for (const header of ['if-match', 'if-none-match', 'if-unmodified-since']) {
    const answer = await token.post('/api/probe/things', { name: 'a' }, { headers: { [header]: '*' } })
    t.match(answer, { status: 400, body: { code: 'E_PRECONDITION', remedy: 'leave the header out' } }, header)
    t.match(answer.body.error, `${header} is not looked at by POST`)
    t.ok((await token.get('/api/probe/echo', { headers: { [header]: '*' } })).status < 400, 'a GET may')
  }
})

test('a body that is compressed, or names what no object may have, is refused with the reason', async t => {
  const token = await k.as.token('write')
  const send = async (body: Buffer | string, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${k.url}/api/probe/things`, {
      method: 'POST',
      body,
      headers: { ...token.credential, 'content-type': 'application/json', ...headers }
    })
    return { status: answer.status, body: await answer.json() }
  }
  const text = '{"name":"a"}'
  t.match(await send(gzipSync(text), { 'content-encoding': 'gzip' }), {
    status: 415,
    body: { error: /content-encoding gzip/, code: 'E_BODY_ENCODING', remedy: /without that header/ }
  })
  t.match(await send(text, { 'content-encoding': 'identity' }), { status: 201 })
  for (const hostile of ['{"name":"a","__proto__":{}}', '{"constructor":{"prototype":{}}}'])
    t.match(await send(hostile), { status: 400, body: { error: /__proto__/, code: 'E_BODY_INVALID' } })
  t.match(await send('{"name":'), { status: 400, body: { error: 'the body is not valid JSON', field: '' } })
})

test('a body in other characters than UTF-8 is refused, as its text would be another one', async t => {
  const token = await k.as.token('write')
  const send = async (body: Buffer, charset: string) => {
    const answer = await fetch(`${k.url}/api/probe/things`, {
      method: 'POST',
      body,
      headers: { ...token.credential, 'content-type': `application/json; charset=${charset}` }
    })
    return { status: answer.status, body: await answer.json() }
  }
  const text = '{"name":"caf\u00e9"}'
  const refused = {
    status: 400,
    body: { code: 'E_BODY_INVALID', error: /not UTF-8/, field: '', remedy: 'encode it in UTF-8' }
  }
  t.match(await send(Buffer.from(text, 'latin1'), 'iso-8859-1'), refused)
  t.match(await send(Buffer.from(`\ufeff${text}`, 'utf16le'), 'utf-16'), refused)
  t.match(await send(Buffer.from(text), 'utf-8'), { status: 201, body: { name: 'caf\u00e9' } })
  t.match(
    await send(Buffer.from(`\ufeff${text}`), 'utf-8'),
    { status: 201 },
    'a mark at the beginning is no part of it'
  )
})

test('a method that a path does not know is 405 with those that it knows', async t => {
  const answer = await k.as.anonymous().send('PATCH', '/api/projects')
  t.match(answer, {
    status: 405,
    body: { error: 'there is no PATCH at this address: use GET, HEAD, POST', code: 'E_METHOD' }
  })
  t.equal(answer.headers.allow, 'GET, HEAD, POST')
  const allowed = async (path: string) => (await k.as.anonymous().send('OPTIONS', path)).headers.allow
  t.equal(await allowed('/api/projects'), 'GET, HEAD, POST', 'who asks for them is told them')
  t.equal(await allowed('/api/ws'), 'GET, HEAD')
  t.equal(await allowed('/api/nothing'), undefined)
})

test('a 401 says how to sign in', async t => {
  for (const answer of [
    await k.as.anonymous().get('/api/projects'),
    await k.as.anonymous().get('/api/projects', { headers: { authorization: 'Bearer busbar_pat_x' } }),
    await k.as.anonymous().post('/api/auth/login', { email: 'a@example.com', password: 'wrong-password' })
  ]) {
    t.equal(answer.status, 401)
    t.equal(answer.headers['www-authenticate'], 'Bearer realm="busbar"')
  }
})

test('all faults of a body are told, and of a large one the first', async t => {
  const token = await k.as.token('write')
  t.match(
    await token.post('/api/probe/things', { name: 'x'.repeat(11), size: '5', tags: [{}, { key: 1 }] }),
    {
      status: 400,
      body: {
        error:
          'name must have at most 10 characters; size must be an integer or null; tags/0/key is required; and 1 more',
        code: 'E_BODY_INVALID',
        field: 'name',
        faults: [
          { field: 'name', error: 'name must have at most 10 characters' },
          { field: 'size', error: 'size must be an integer or null' },
          { field: 'tags/0/key', error: 'tags/0/key is required' },
          { field: 'tags/1/key', error: 'tags/1/key must be a string' }
        ]
      }
    }
  )
  const { body } = await token.post('/api/probe/things', {
    name: 'a',
    tags: Array.from({ length: 3000 }, () => ({}))
  })
  t.match(body, { error: 'tags/0/key is required', field: 'tags/0/key' })
  t.equal(body.faults.length, 1)
})

test('HEAD answers like GET without a body', async t => {
  t.match(await k.as.anonymous().send('HEAD', '/api/version'), { status: 200, body: null })
})

test('answers come in one order: 401, CSRF 403, session-only 403, scope 403, role 403, path 400, body 400', async t => {
  const id = '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d11'
  const member = await k.as.session('member')
  t.match(await k.as.anonymous().post('/api/probe/session/bad', '{'), {
    status: 401,
    body: { error: 'unauthorized' }
  })
  t.match(await member.post('/api/probe/session/bad', '{', { headers: { 'x-csrf-token': '' } }), {
    status: 403,
    body: { error: 'missing csrf token' }
  })
  t.match(await member.post('/api/probe/session/bad', '{', { headers: { 'x-csrf-token': 'wrong' } }), {
    status: 403,
    body: { error: 'invalid csrf token' }
  })
  t.match(await (await k.as.token('metrics')).post('/api/probe/session/bad', '{'), {
    status: 403,
    body: { error: 'this action requires a session, not a personal access token' }
  })
  t.match(await (await k.as.token('metrics')).get('/api/probe/admin'), {
    status: 403,
    body: { error: 'token lacks required scope: read' }
  })
  t.match(await (await k.as.token('read', { user: 'member' })).get('/api/probe/admin'), {
    status: 403,
    body: { error: 'forbidden: only users with the role admin may do this' }
  })
  t.match(await member.post('/api/probe/session/bad', '{'), { status: 400, body: { code: 'E_PATH_INVALID' } })
  t.match(await member.post(`/api/probe/session/${id.toUpperCase()}`, '{'), {
    status: 400,
    body: { code: 'E_PATH_INVALID' }
  })
  t.match(await member.post(`/api/probe/session/${id}`, '{'), {
    status: 400,
    body: { code: 'E_BODY_INVALID' }
  })
  t.equal((await member.post(`/api/probe/session/${id}`, { name: 'a' })).status, 200)
})

test('a Bearer header is the only credential looked at when there is one', async t => {
  const session = await k.as.session()
  t.match(await session.get('/api/probe/admin', { headers: { authorization: 'Bearer nonsense' } }), {
    status: 401,
    body: { error: 'invalid or expired token' }
  })
})

test('Idempotency-Key repeats the first answer, and is a conflict with another body', async t => {
  const token = await k.as.token('write')
  const headers = { 'idempotency-key': 'one' }
  const first = await token.post('/api/probe/things', { name: 'a' }, { headers })
  const again = await token.post('/api/probe/things', { name: 'a' }, { headers })
  t.equal(first.status, 201)
  t.same([again.status, again.body], [201, first.body])
  t.equal(again.headers['idempotent-replayed'], 'true')
  t.match(await token.post('/api/probe/things', { name: 'b' }, { headers }), {
    status: 409,
    body: { code: 'E_IDEMPOTENCY_MISMATCH' }
  })
  t.match(
    await (await k.as.token('write')).post('/api/probe/things', { name: 'b' }, { headers }),
    { status: 201 },
    'another caller has keys of its own'
  )
  t.match(
    await token.post('/api/probe/things', { name: 'a' }, { headers: { 'idempotency-key': 'x'.repeat(300) } }),
    { status: 400, body: { code: 'E_IDEMPOTENCY_KEY' } }
  )
})

test('ten requests at once with one key run the handler once', async t => {
  const token = await k.as.token('write')
  const answers = await Promise.all(
    Array.from(
      { length: 10 },
      async () =>
        await token.post('/api/probe/things', { name: 'a' }, { headers: { 'idempotency-key': 'many' } })
    )
  )
  const made = answers.filter(
    ({ status, headers }) => status === 201 && headers['idempotent-replayed'] === undefined
  )
  t.equal(made.length, 1)
  for (const { status, body } of answers) t.ok(status === 201 || body.code === 'E_IDEMPOTENCY_IN_PROGRESS')
})

test('what changes something is in the audit log with its outcome', async t => {
  const token = await k.as.token('write')
  await token.post('/api/probe/things', { name: 'audited' })
  const rows = await k.query<{
    action: string
    resource_id: string
    user_email: string
    token_name: string
    ip_address: string
    details: object
  }>('select * from kernel.audit_log where action = $1 order by created_at desc limit 1', ['create_thing'])
  t.match(rows[0], {
    resource_id: '6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d11',
    user_email: 'admin@example.com',
    ip_address: '127.0.0.1',
    details: { outcome: 'success' }
  })
})

test('a token has a hundred requests a minute, told by three headers and refused in plain text', async t => {
  const token = await k.as.token('read')
  const first = await token.get('/api/probe/list')
  t.match(first.headers, { 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '99' })
  for (let n = 0; n < 99; n++) await token.get('/api/probe/list')
  const over = await token.get('/api/probe/list')
  t.match(over, { status: 429, body: /^rate limit exceeded/ })
  t.match(over.headers, {
    'content-type': /^text\/plain/,
    'x-ratelimit-remaining': '0',
    'retry-after': /^\d+$/
  })
  t.match(over.headers['x-ratelimit-reset'], /^\d{10}$/)
  t.equal(
    (await (await k.as.token('read')).get('/api/probe/list')).status,
    200,
    'another token has its own budget'
  )
})

test('a route may have a budget of its own by address', async t => {
  const client = k.as.anonymous()
  const from = async (ip: string) =>
    (await client.get('/api/probe/limited', { headers: { 'x-forwarded-for': ip } })).status
  t.same(
    [
      await from('203.0.113.1'),
      await from('203.0.113.1'),
      await from('203.0.113.1'),
      await from('203.0.113.2')
    ],
    [200, 200, 429, 200]
  )
})

test('forwarded addresses are believed as far as trusted proxies wrote them', async t => {
  const client = k.as.anonymous()
  const seen = async (headers: Record<string, string>) =>
    (await client.get('/api/probe/echo', { headers })).body
  t.match(await seen({ 'x-forwarded-for': '198.51.100.9, 203.0.113.7' }), { ip: '203.0.113.7' })
  t.match(await seen({ 'x-forwarded-for': '203.0.113.7, 127.0.0.1' }), { ip: '203.0.113.7' })
  t.match(await seen({ 'x-forwarded-for': 'nonsense', 'x-forwarded-proto': 'https' }), {
    ip: '127.0.0.1',
    secure: true
  })
})

test('CORS is for the origins of CORS_ORIGINS alone', async t => {
  const client = k.as.anonymous()
  const good = await client.send('OPTIONS', '/api/version', {
    headers: { origin: 'https://ui.example.com', 'access-control-request-method': 'POST' }
  })
  t.match(good, {
    status: 204,
    headers: {
      'access-control-allow-origin': 'https://ui.example.com',
      'access-control-allow-credentials': 'true'
    }
  })
  const bad = await client.get('/api/version', { headers: { origin: 'https://evil.example.com' } })
  t.equal(bad.headers['access-control-allow-origin'], undefined)
})

test('every answer carries the security headers and a request id', async t => {
  const { headers } = await k.as.anonymous().get('/api/nowhere')
  t.match(headers, {
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'cache-control': 'no-store',
    'x-request-id': /.+/
  })
})

test('an event stream stops its source when the client goes away', async t => {
  const response = await k.as.anonymous().open('/api/probe/events')
  t.match(response.headers, { 'content-type': 'text/event-stream' })
  const [chunk] = (await once(response, 'data')) as [Buffer]
  t.match(chunk.toString(), /event: tick\ndata: {"n":\d+}\n\n/)
  response.destroy()
  await until(() => k.inFlight('probe') === 0, 'no request is under way')
  t.equal(k.inFlight('probe'), 0)
})

test('what is not HTTP gets 400 and a closed connection', async t => {
  const socket = connect(k.port, '127.0.0.1')
  socket.end('this is not http\r\n\r\n')
  let answer = ''
  for await (const chunk of socket) answer += String(chunk)
  t.match(answer, /^HTTP\/1\.1 400 .*E_REQUEST_INVALID/s)
})

test('the clock moves the rate limit', async t => {
  const clock = testClock()
  const own = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }], clock })
  const client = own.as.anonymous()
  for (let n = 0; n < 3; n++) await client.get('/api/probe/limited')
  t.equal((await client.get('/api/probe/limited')).status, 429)
  await clock.advance(61_000)
  t.equal((await client.get('/api/probe/limited')).status, 200)
  await own.close()
})

test('the platform stops', async () => {
  await k.close()
})
