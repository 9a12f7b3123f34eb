import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { allow, definePlugin, maybe, object, Problem, reply, Type } from 'busbar/sdk'
import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

/** A platform with an operation that its caller ends, long after its time. */
async function overdue(t: Test) {
  const ends: Array<{ resolve: (answer: object) => void; reject: (error: Error) => void }> = []
  const slow = definePlugin({
    id: 'slow',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/slow',
        summary: 'Work Slowly',
        access: allow.session({ project: 'none' }),
        idempotent: true,
        timeoutMs: 200,
        handler: async () =>
          ends.length > 0
            ? { done: 'the second time' }
            : await new Promise<object>((resolve, reject) => {
                ends.push({ resolve, reject })
              })
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'slow' }, definition: slow }] })
  t.teardown(() => k.close())
  const admin = await k.as.session()
  const post = async () => await admin.post('/api/slow', {}, { headers: { 'idempotency-key': 'one' } })
  t.match(await post(), { status: 503, body: { code: 'E_TIMEOUT' } })
  return { ends, post }
}

test('a key whose first request was answered 503 for its time is told when to ask again, and gets the answer of the work', async t => {
  const { ends, post } = await overdue(t)
  t.match(await post(), {
    status: 409,
    headers: { 'retry-after': '2' },
    body: {
      code: 'E_IDEMPOTENCY_IN_PROGRESS',
      remedy: 'send it again after the seconds of Retry-After, and it gets that answer'
    }
  })
  ends[0]?.resolve({ done: 'late' })
  await until(async () => (await post()).status === 200, 'the answer of the work')
  t.match(await post(), { status: 200, body: { done: 'late' }, headers: { 'idempotent-replayed': 'true' } })
  t.equal(ends.length, 1)
})

test('work that fails after its 503 leaves its key to the next request', async t => {
  const { ends, post } = await overdue(t)
  ends[0]?.reject(new Problem(409, 'E_NOT_NOW', 'not now'))
  await until(async () => (await post()).status === 200, 'the key is free')
  t.match(await post(), { status: 200, body: { done: 'the second time' } })
})

/** A platform on a clock of the test's own, with a route that tells how often it ran and fails when it is asked to. */
async function counting(t: Test) {
  const steady = testClock()
  let aheadMs = 0
  // Jumps: what is done every few seconds need not be done for a whole day.
  const clock = { ...steady, now: () => new Date(steady.now().getTime() + aheadMs) }
  const state: { runs: number; failure: Error | undefined } = { runs: 0, failure: undefined }
  const counter = definePlugin({
    id: 'counter',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/counter',
        summary: 'Count',
        access: allow.public('a test'),
        idempotent: true,
        timeoutMs: 1_000,
        schema: { body: object({ n: maybe(Type.Integer()), hang: maybe(Type.Boolean()) }) },
        handler: async ({ body }) => {
          state.runs++
          if (state.failure !== undefined) throw state.failure
          if (body.hang === true) await new Promise(() => {})
          return { runs: state.runs }
        }
      })
    }
  })
  const k = await createTestKernel({ clock, inline: [{ manifest: { id: 'counter' }, definition: counter }] })
  t.teardown(() => k.close())
  const client = k.as.anonymous()
  return {
    url: k.url,
    state,
    later: (ms: number): void => {
      aheadMs += ms
    },
    /** The next of the sweeps, which come once an hour. */
    sweep: async () => await steady.advance(60 * minuteMs),
    post: async (key: string, body: object = {}) =>
      await client.post('/api/counter', body, { headers: { 'idempotency-key': key } }),
    keys: async (): Promise<string[]> =>
      (await k.query<{ key: string }>('select key from kernel.idempotency_key order by key')).map(
        ({ key }) => key
      )
  }
}

test('an answer is repeated for 24 hours, and then the key is as good as new, with another body too', async t => {
  const { later, state, post } = await counting(t)
  const first = { status: 200, body: { runs: 1 } }
  t.match(await post('one'), first)
  later(6 * minuteMs)
  t.match(await post('one'), first, 'longer than a request that never ended keeps its key')
  later(dayMs - 6 * minuteMs)
  t.match(await post('one'), first)
  t.equal(state.runs, 1)
  later(1)
  t.match(await post('one', { n: 2 }), { status: 200, body: { runs: 2 } })
  t.match(await post('one', { n: 2 }), { status: 200, body: { runs: 2 } }, 'and holds for as long again')
  t.equal((await post('one')).status, 409)
})

test('a request that failed leaves its key to the next, whatever the failure and its body', async t => {
  const { state, post } = await counting(t)
  for (const [failure, status] of [
    [new Problem(409, 'E_NOT_NOW', 'not now'), 409],
    [new Error('the inside of the platform'), 500]
  ] as const) {
    state.runs = 0
    state.failure = failure
    t.equal((await post(`after ${status}`)).status, status)
    t.equal((await post(`after ${status}`)).status, status)
    t.equal(state.runs, 2)
    state.failure = undefined
    t.match(await post(`after ${status}`, { n: 1 }), { status: 200, body: { runs: 3 } })
  }
})

test('a request whose end nobody knows never runs again with its key, which is as good as new after a day', async t => {
  const { later, state, post } = await counting(t)
  const body = { hang: true }
  t.match(await post('one', body), { status: 503, body: { code: 'E_TIMEOUT' } })
  later(5 * minuteMs)
  t.match(await post('one', body), { status: 409, body: { code: 'E_IDEMPOTENCY_IN_PROGRESS' } })
  later(1)
  const unknown = await post('one', body)
  t.match(unknown, {
    status: 409,
    body: {
      code: 'E_IDEMPOTENCY_OUTCOME_UNKNOWN',
      remedy: 'look whether what it makes or starts is there; if not, send it with a new key'
    }
  })
  t.notOk(unknown.headers['retry-after'], 'nothing comes of asking again')
  t.match(await post('one'), { status: 409, body: { code: 'E_IDEMPOTENCY_MISMATCH' } })
  t.equal(state.runs, 1)
  later(dayMs)
  t.match(await post('one'), { status: 200, body: { runs: 2 } })
})

test('answers that nobody may ask for again are forgotten within the hour, and no others', async t => {
  const { later, sweep, post, keys } = await counting(t)
  await post('old')
  later(2 * minuteMs)
  await post('young')
  later(dayMs - 61 * minuteMs)
  await sweep()
  t.same(await keys(), ['young'], 'one of them is older than a day by a minute')
})

test('a key is of its caller, its method and its path, whatever the query', async t => {
  let runs = 0
  const own = definePlugin({
    id: 'own',
    routes(route) {
      const declare = (method: 'POST' | 'PUT', url: string, access: Parameters<typeof route>[0]['access']) =>
        route({
          method,
          url,
          summary: 'Count',
          access,
          idempotent: true,
          schema: { response: { 202: object({ runs: Type.Integer() }) } },
          handler: () => reply(202, { runs: ++runs })
        })
      declare('POST', '/api/own/any', allow.public('a test'))
      declare('PUT', '/api/own/any', allow.public('a test'))
      declare('POST', '/api/own/hooks/:token', allow.public('a test'))
      declare('POST', '/api/own/:name', allow.token('read', { project: 'none' }))
    }
  })
  const k = await createTestKernel({
    environment: { TRUST_PROXY: '127.0.0.1' },
    inline: [{ manifest: { id: 'own' }, definition: own }]
  })
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const [one, other] = [await k.as.token('read', { user: 'ann' }), await k.as.token('read', { user: 'ann' })]
  const from = (ip: string) => ({ headers: { 'idempotency-key': 'same', 'x-forwarded-for': ip } })
  const headers = from('203.0.113.1')
  const nobody = k.as.anonymous()
  const calls = {
    'a session': async () => await ann.post('/api/own/thing', {}, headers),
    'a session of another user': async () =>
      await (await k.as.session('bob')).post('/api/own/thing', {}, headers),
    'a token': async () => await one.post('/api/own/thing', {}, headers),
    'another token of the same user': async () => await other.post('/api/own/thing', {}, headers),
    'another path': async () => await ann.post('/api/own/other', {}, headers),
    'an address': async () => await nobody.post('/api/own/any', {}, headers),
    'another address': async () => await nobody.post('/api/own/any', {}, from('203.0.113.2')),
    'another method': async () => await nobody.put('/api/own/any', {}, headers)
  }
  for (const [at, [what, call]] of Object.entries(calls).entries()) {
    t.match(await call(), { status: 202, body: { runs: at + 1 } }, what)
    t.match(await call(), { status: 202, body: { runs: at + 1 } }, `${what}, again`)
  }
  t.match(await ann.post('/api/own/thing?n=1', {}, headers), { body: { runs: 1 } }, 'a query makes no other')
  const hook = async (token: string, ip: string) => await nobody.post(`/api/own/hooks/${token}`, {}, from(ip))
  const { runs: first } = (await hook('one', '203.0.113.1')).body
  t.match(await hook('one', '203.0.113.2'), { body: { runs: first } }, 'a token in the path is the caller')
  t.match(await hook('two', '203.0.113.1'), { body: { runs: first + 1 } })
})

test('a key has up to 255 printable characters', async t => {
  const { post } = await counting(t)
  t.equal((await post('x'.repeat(255))).status, 200)
  for (const key of ['x'.repeat(256), 'a\u00e9', ' '])
    t.match(await post(key), { status: 400, body: { code: 'E_IDEMPOTENCY_KEY' } }, key)
})

test('a key that is sent twice is refused, as nobody can say which one is meant', async t => {
  const { url, state } = await counting(t)
  const request = httpRequest(`${url}/api/counter`, {
    method: 'POST',
    headers: { 'idempotency-key': ['a', 'b'] }
  }).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  t.equal(response.statusCode, 400)
  t.match(await json(response), { code: 'E_IDEMPOTENCY_KEY' })
  t.equal(state.runs, 0)
})

test('an operation that takes no key refuses it by its name, and does nothing', async t => {
  let runs = 0
  const plain = definePlugin({
    id: 'plain',
    routes(route) {
      for (const method of ['GET', 'POST', 'DELETE'] as const)
        route({
          method,
          url: '/api/plain/:thing',
          summary: `${method} It`,
          access: allow.public('a test'),
          handler: () => ({ runs: ++runs })
        })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'plain' }, definition: plain }] })
  t.teardown(() => k.close())
  for (const method of ['GET', 'POST', 'DELETE']) {
    const answer = await fetch(`${k.url}/api/plain/one`, { method, headers: { 'idempotency-key': 'k' } })
    t.equal(answer.status, 400)
    t.match(await answer.json(), {
      error: `${method} /api/plain/:thing takes no Idempotency-Key, and would run again: leave the header out`,
      code: 'E_IDEMPOTENCY_KEY',
      remedy: 'leave the header out'
    })
  }
  t.equal(runs, 0)
})

test('what is remembered of a request has neither its secrets nor those of its answer in the clear', async t => {
  const key = 'pass-it-on'
  const gate = definePlugin({
    id: 'gate',
    routes(route) {
      route({
        method: 'POST',
        url: '/api/gate/:hook',
        summary: 'Open',
        access: allow.public('a test'),
        idempotent: true,
        schema: { body: object({ password: Type.String() }) },
        handler: () => ({ token: 'told-once' })
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'gate' }, definition: gate }] })
  t.teardown(() => k.close())
  const open = async (password: string) =>
    await k.as
      .anonymous()
      .post('/api/gate/hook-secret', { password }, { headers: { 'idempotency-key': key } })
  t.match(await open('hunter2'), { status: 200, body: { token: 'told-once' } })
  t.match(await open('hunter2'), { body: { token: 'told-once' }, headers: { 'idempotent-replayed': 'true' } })
  t.match(await open('hunter3'), { status: 409 })
  const [row] = await k.query('select * from kernel.idempotency_key')
  t.match(row, { key })
  t.notMatch(JSON.stringify(row), /told-once|hunter2|hook-secret/)
  const plain = createHash('sha256').update(JSON.stringify({ password: 'hunter2' }))
  t.notOk(JSON.stringify(row).includes(plain.digest('hex')), 'nor what a guess could be compared with')
})
