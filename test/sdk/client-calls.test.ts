/** What the client does by itself when an answer is not the one that was hoped for, or none comes. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type ApiError, createClient, NetworkError } from 'busbar/client'
import { createTestKernel, type TestKernel, testClock } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const hourMs = 3_600_000
const clock = testClock()
const k: TestKernel = await createTestKernel({ clock })
const { email, password } = await k.user('admin')

/** A client that notes where it has been. */
function watched(url = k.url) {
  k.resetRateLimits()
  const asked: string[] = []
  const client = createClient({
    url,
    fetch: async (address, init) => {
      asked.push(`${init?.method} ${String(address).slice(url.length)}`)
      return await fetch(address, init)
    }
  })
  return { client, asked }
}

/** A server that answers each request with the next of these statuses, and 200 from then on. */
async function answering(t: Test, statuses: readonly number[], headers: Record<string, string> = {}) {
  const left = [...statuses]
  let requests = 0
  const server = createServer((_: IncomingMessage, response: ServerResponse) => {
    requests++
    const status = left.shift() ?? 200
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(status === 200 ? {} : headers)
    })
    response.end(status === 200 ? '[]' : '{"error":"not now","code":"E_NOT_NOW"}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { client: createClient({ url: `http://127.0.0.1:${port}`, token: 'x' }), requests: () => requests }
}

test('a session is renewed when its hour is over, once for all calls that are under way', async t => {
  const { client, asked } = watched()
  const person = await client.signIn({ email, password })
  await clock.advance(hourMs + 60_000)
  const answers = await Promise.all([
    ...Array.from({ length: 10 }, async () => await person.get('/api/auth/me')),
    person.post('/api/projects', { body: { name: 'Late', slug: 'late' } })
  ])
  t.equal(answers.length, 11)
  t.equal(asked.filter(one => one === 'POST /api/auth/refresh').length, 1)
  await clock.advance(hourMs + 60_000)
  t.equal((await person.get('/api/auth/me')).email, email, 'and again an hour later')
  t.equal(asked.filter(one => one === 'POST /api/auth/refresh').length, 2)
})

test('a session that has ended is not renewed for ever, nor is a token, nor a wrong password', async t => {
  const { client, asked } = watched()
  const person = await client.signIn({ email, password })
  const other = await client.signIn({ email, password })
  for (const { id, current } of await other.get('/api/auth/sessions'))
    if (!current) await other.delete('/api/auth/sessions/{sessionId}', { params: { sessionId: id } })
  await t.rejects(person.get('/api/auth/me'), { code: 'E_TOKEN_INVALID' })
  t.equal(asked.filter(one => one === 'POST /api/auth/refresh').length, 1)
  await t.rejects(client.withToken('busbar_pat_none').get('/api/auth/me'), { code: 'E_TOKEN_INVALID' })
  await t.rejects(client.signIn({ email, password: 'wrong' }), { code: 'E_AUTH_CREDENTIALS' })
  t.equal(asked.filter(one => one === 'POST /api/auth/refresh').length, 1)
})

test('numbers and booleans may stand in an address, and nothing leads out of its path', async t => {
  const { client, asked } = watched()
  const person = await client.signIn({ email, password })
  await person.get('/api/audit-logs', { query: { limit: 1, offset: 0 } })
  t.equal(asked.at(-1), 'GET /api/audit-logs?limit=1&offset=0')
  for (const projectId of ['..', '.', ''])
    await t.rejects(person.get('/api/projects/{projectId}', { params: { projectId } }), TypeError)
  await t.rejects(person.get('/api/projects/{projectId}', { params: { projectId: 'a/../b' } }), {
    message: /answered 400/
  })
})

test('an operation is called by its name too', async t => {
  const person = await watched().client.signIn({ email, password })
  const { id } = await person.operations.CreateProject({ body: { name: 'Named', slug: 'named' } })
  t.equal((await person.operations.GetProject({ params: { projectId: id } })).slug, 'named')
  t.equal((await person.projects.find('named'))?.id, id)
  await person.projects.delete(id)
})

test('a refusal tells every field that is wrong', async t => {
  const person = await watched().client.signIn({ email, password })
  const error = (await person
    .post('/api/projects', { body: { name: 5, slug: [] } as never })
    .catch((thrown: unknown) => thrown)) as ApiError
  t.match(error, { status: 400, field: 'name', requestId: /.+/ })
  t.same(
    error.faults.map(({ field }) => field),
    ['name', 'slug']
  )
})

test('a refusal says what helps once, in its message and by itself', async t => {
  const person = await watched().client.signIn({ email, password })
  const error = (await person
    .get('/api/projects', { headers: { 'idempotency-key': 'k' } })
    .catch((thrown: unknown) => thrown)) as ApiError
  t.equal(error.remedy, 'leave the header out')
  t.equal(error.message.split('leave the header out').length, 2, error.message)
})

test('an address that is missing or none is refused when the client is made', t => {
  for (const url of [undefined, '', 'no address', 'busbar.example.com', 'ftp://a:b@c', 'http://'])
    t.throws(
      () => createClient({ url } as never),
      { name: 'TypeError', message: /^url .*createClient\({ url/ },
      String(url)
    )
  t.equal(createClient({ url: 'https://busbar.example.com/under//' }).url, 'https://busbar.example.com/under')
  t.end()
})

test('what was refused for now is sent again when the platform says so', async t => {
  const soon = { 'retry-after': '0' }
  const limited = await answering(t, [429, 429], soon)
  await limited.client.post('/api/projects', { body: { name: 'a', slug: 'a' } })
  t.equal(limited.requests(), 3, 'anything after 429: it was not carried out')
  const busy = await answering(t, [503], soon)
  await busy.client.get('/api/projects')
  t.equal(busy.requests(), 2)
  const keyed = await answering(t, [503], soon)
  await keyed.client.post('/api/projects', { body: { name: 'a', slug: 'a' }, idempotencyKey: 'once' })
  t.equal(keyed.requests(), 2)
  const underWay = await answering(t, [409, 409], soon)
  await underWay.client.post('/api/projects', { body: { name: 'a', slug: 'a' }, idempotencyKey: 'once' })
  t.equal(underWay.requests(), 3, 'the first request with the key is still being answered')
})

test('what may have been done is not sent again, nor without a time, nor for ever, nor when nobody waits', async t => {
  const body = { name: 'a', slug: 'a' }
  const post = await answering(t, [503], { 'retry-after': '0' })
  await t.rejects(post.client.post('/api/projects', { body }), { code: 'E_NOT_NOW', message: /503/ })
  t.equal(post.requests(), 1)
  const untimed = await answering(t, [429])
  await t.rejects(untimed.client.get('/api/projects'), { code: 'E_NOT_NOW' })
  t.equal(untimed.requests(), 1)
  const endless = await answering(t, Array<number>(50).fill(429), { 'retry-after': '0' })
  await t.rejects(endless.client.get('/api/projects'), { code: 'E_NOT_NOW' })
  t.equal(endless.requests(), 6)
  const late = await answering(t, [429], { 'retry-after': '900' })
  await t.rejects(late.client.get('/api/projects'), { code: 'E_NOT_NOW' })
  const aborted = await answering(t, [429], { 'retry-after': '30' })
  await t.rejects(aborted.client.get('/api/projects', { signal: AbortSignal.timeout(100) }), {
    name: 'TimeoutError'
  })
  t.equal(aborted.requests(), 1)
})

test('when no answer comes, the error says what was tried, why, and what helps, without a secret', async t => {
  const server = createServer(() => {}).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const silent = createClient({ url: `http://127.0.0.1:${port}`, token: 'secret', timeoutMs: 50 })
  await t.rejects(silent.get('/api/projects'), { code: 'TIMEOUT', remedy: /timeoutMs/ })
  const plain = createClient({ url: `https://127.0.0.1:${port}`, token: 'secret' })
  await t.rejects(plain.get('/api/projects'), { name: 'NetworkError', remedy: /http:\/\// })
  server.closeAllConnections()
  server.close()
  const nobody = createServer().listen(0, '127.0.0.1')
  await once(nobody, 'listening')
  const { port: closed } = nobody.address() as AddressInfo
  nobody.close()
  await once(nobody, 'close')
  const error = await createClient({ url: `http://127.0.0.1:${closed}/`, token: 'secret' })
    .get('/api/audit-logs', { query: { action: 'secret' } })
    .catch((thrown: unknown) => thrown)
  t.ok(error instanceof NetworkError)
  t.match(error, {
    method: 'GET',
    address: `http://127.0.0.1:${closed}/api/audit-logs`,
    code: 'ECONNREFUSED',
    message: /^GET http:\S+ failed with ECONNREFUSED: nothing listens there/
  })
  t.notMatch(JSON.stringify(error) + String(error), /secret/)
  await t.rejects(createClient({ url: 'http://nowhere.invalid', token: 'secret' }).get('/api/version'), {
    name: 'NetworkError',
    code: /ENOTFOUND|EAI_AGAIN/
  })
})

test('the platform stops', async () => {
  await k.close()
})
