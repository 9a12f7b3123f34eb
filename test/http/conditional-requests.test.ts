import { request } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { allow, definePlugin, described, object, reply, sse, Type } from 'busbar/sdk'
import { createTestKernel, type TestClient, type TestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

const text = described(Type.String(), 'A text.')
const page = object({ text })
const long = 'a long text, '.repeat(500)

/** What its routes answer, and how often one of them was asked. */
function library() {
  const state = { text: long, version: '1' as string | undefined, calls: 0 }
  const definition = definePlugin({
    id: 'library',
    routes(route) {
      const answer = () => ({ text: state.text })
      const ours = {
        method: 'GET',
        access: allow.token('read', { project: 'none' }),
        schema: { response: { 200: page } }
      } as const
      route({ ...ours, url: '/api/library/plain', summary: 'Plain', handler: answer })
      route({
        ...ours,
        url: '/api/library/versioned',
        summary: 'Versioned',
        version: () => state.version,
        handler: () => {
          state.calls++
          return reply(200, answer(), { headers: { 'X-Told': 'yes' } })
        }
      })
      route({
        ...ours,
        url: '/api/library/counted',
        summary: 'Counted',
        handler: () => reply(200, { text: '' }, { headers: { 'X-Rows': state.text } })
      })
      route({
        ...ours,
        url: '/api/library/secret',
        summary: 'Secret',
        audit: { action: 'reveal_text', resource: 'text' },
        handler: answer
      })
      route({
        ...ours,
        url: '/api/library/unkept',
        summary: 'Unkept',
        handler: () => reply(200, answer(), { headers: { 'Cache-Control': 'no-store' } })
      })
      route({
        ...ours,
        url: '/api/library/cookie',
        summary: 'Cookie',
        handler: () =>
          reply(200, answer(), {
            cookies: [{ name: 'a', value: 'b', path: '/', httpOnly: true, maxAgeSeconds: 1 }]
          })
      })
      route({
        method: 'GET',
        url: '/api/library/stream',
        summary: 'Stream',
        access: allow.token('read', { project: 'none' }),
        produces: 'text/event-stream',
        handler: () =>
          sse(
            (async function* () {
              yield { data: long }
            })()
          )
      })
      route({
        ...ours,
        method: 'POST',
        url: '/api/library/write',
        summary: 'Write',
        handler: answer
      })
    }
  })
  return { state, plugin: { manifest: { id: 'library' }, definition } }
}

async function open(t: Test): Promise<{ k: TestKernel; state: ReturnType<typeof library>['state'] }> {
  const { state, plugin } = library()
  const k = await createTestKernel({ inline: [plugin] })
  t.teardown(() => k.close())
  return { k, state }
}

interface Bytes {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** As it comes over the wire. */
async function bytesOf(
  { url, credential }: TestClient,
  path: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET'
): Promise<Bytes> {
  return await new Promise((resolve, reject) => {
    const call = request(
      url + path,
      { method, headers: { ...credential, ...headers }, agent: false },
      response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () => {
          resolve({ status: response.statusCode, headers: response.headers, body: Buffer.concat(chunks) })
        })
      }
    )
    call.on('error', reject)
    call.end()
  })
}

const none = { headers: {} }
const asks = (answer: { readonly headers: Readonly<Record<string, unknown>> }) => ({
  headers: { 'if-none-match': String(answer.headers.etag) }
})

test('an answer that has not changed is 304 to who has its tag, and a changed one is sent', async t => {
  const { k, state } = await open(t)
  const ann = await k.as.token('read', { user: 'ann' })
  for (const path of ['/api/library/plain', '/api/library/versioned']) {
    Object.assign(state, { text: long, version: '1' })
    const first = await ann.get(path)
    t.match(first, {
      status: 200,
      headers: { etag: /^W\/"[\w-]{22}"$/, 'cache-control': 'private, no-cache', vary: 'Accept-Encoding' }
    })
    for (const list of [first.headers.etag, `"a,b", ${first.headers.etag ?? ''} , W/"c"`, '*']) {
      const again = await ann.get(path, { headers: { 'if-none-match': String(list) } })
      t.match(again, { status: 304, body: null })
      for (const name of ['etag', 'cache-control', 'vary'])
        t.equal(again.headers[name], first.headers[name], name)
      t.notHas(again.headers, { 'content-type': /./ })
      t.notHas(again.headers, { 'content-length': /./ })
    }
    t.equal((await ann.send('HEAD', path, asks(first))).status, 304)
    t.equal((await ann.get(path, { headers: { 'if-none-match': '"other", ""' } })).status, 200)
    Object.assign(state, { text: `${long}.`, version: '2' })
    const changed = await ann.get(path, asks(first))
    t.match(changed, { status: 200, body: { text: state.text } })
    t.not(changed.headers.etag, first.headers.etag)
  }
})

test('what a header tells is a part of the answer', async t => {
  const { k, state } = await open(t)
  const ann = await k.as.token('read', { user: 'ann' })
  state.text = '1'
  const first = await ann.get('/api/library/counted')
  t.equal((await ann.get('/api/library/counted', asks(first))).status, 304)
  state.text = '2'
  t.match(await ann.get('/api/library/counted', asks(first)), { status: 200, headers: { 'x-rows': '2' } })
})

test('an answer whose version stays is kept and sent again without its handler', async t => {
  const { k, state } = await open(t)
  const path = '/api/library/versioned'
  const ann = await k.as.token('read', { user: 'ann' })
  const first = await ann.get(path)
  const second = await ann.get(path)
  t.equal(state.calls, 1)
  t.same(second.body, first.body)
  for (const name of ['etag', 'content-type', 'content-length', 'x-told', 'cache-control', 'vary'])
    t.equal(second.headers[name], first.headers[name], name)
  t.equal((await ann.get(`${path}?other`)).status, 200)
  t.equal(state.calls, 2, 'at another address is another answer')

  const bob = await k.as.token('read', { user: 'bob' })
  t.equal((await bob.get(path, asks(first))).status, 200, 'and so is that to somebody else')
  t.equal(state.calls, 3)
  t.equal((await (await k.as.session('ann')).get(path, asks(first))).status, 200)
  t.equal(state.calls, 4)

  state.version = undefined
  t.match(await ann.get(path), { status: 200, headers: { etag: /./ } })
  t.equal(state.calls, 5, 'nothing is known of it')

  for (const none of [null, 0, {}]) {
    state.version = none as never
    await ann.get(path)
    await ann.get(path)
  }
  t.equal(state.calls, 11, 'nor by what is no text')

  state.version = '1'
  await k.reload('library')
  t.equal((await ann.get(path, asks(first))).status, 200, 'another run may answer otherwise')
  t.equal(state.calls, 12)
  await t.rejects(
    ann.get(path, { headers: { 'accept-encoding': 'br' } }),
    { name: 'SyntaxError' },
    'not read here'
  )
})

test('who may not see an answer is refused, whatever tag they have', async t => {
  const { k } = await open(t)
  const ann = await k.as.session('ann')
  const { body: project } = await ann.post('/api/projects', { name: 'Acme', slug: 'acme' })
  await ann.put(`/api/projects/${project.id}/members`, {
    email: (await k.user('bob')).email,
    role: 'viewer'
  })
  const bob = await k.as.session('bob')
  const paths = [`/api/projects/${project.id}`, `/api/projects/${project.id}/applications`]
  const had = await Promise.all(paths.map(async path => await bob.get(path)))
  for (const [at, path] of paths.entries()) t.equal((await bob.get(path, asks(had[at] ?? none))).status, 304)
  await ann.delete(`/api/projects/${project.id}/members/${bob.userId ?? ''}`)
  for (const [at, path] of paths.entries()) t.equal((await bob.get(path, asks(had[at] ?? none))).status, 404)
  t.equal((await k.as.anonymous().get(paths[0] ?? '', asks(had[0] ?? none))).status, 401)
})

test('an answer comes in the content coding that is asked for, kept or not', async t => {
  const { k } = await open(t)
  const ann = await k.as.token('read', { user: 'ann' })
  const whole = JSON.stringify({ text: long })
  const cases: ReadonlyArray<readonly [accept: string, coding: string | undefined]> = [
    ['gzip, deflate, br, zstd', 'br'],
    ['br;q=0.5, gzip', 'gzip'],
    ['gzip', 'gzip'],
    ['GZIP;q=0.1', 'gzip'],
    ['*', 'br'],
    ['br;q=0, *;q=0.5', 'gzip'],
    ['identity;q=0, gzip;q=0.5', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['gzip;q=0', undefined],
    ['deflate', undefined],
    ['*;q=0', undefined],
    ['', undefined],
    [`gzip, ${'x'.repeat(10_000)}`, undefined]
  ]
  for (const path of ['/api/library/plain', '/api/library/versioned', '/api/library/versioned']) {
    const tags = new Set<unknown>()
    for (const [accept, coding] of cases) {
      k.resetRateLimits()
      const { headers, body } = await bytesOf(ann, path, { 'accept-encoding': accept })
      t.equal(headers['content-encoding'], coding, `${path}: ${accept.slice(0, 40)}`)
      t.equal(headers['content-length'], String(body.length))
      t.equal(headers.vary, 'Accept-Encoding')
      const decoded =
        coding === 'br' ? brotliDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body
      t.ok(decoded.toString() === whole)
      if (coding !== undefined) t.ok(body.length < whole.length / 5)
      tags.add(headers.etag)
    }
    t.equal(tags.size, 1, 'a weak tag is the same in each')
  }
  const { headers, body } = await bytesOf(ann, '/api/library/plain', { 'accept-encoding': 'gzip' }, 'HEAD')
  t.equal(headers['content-encoding'], 'gzip')
  t.equal(body.length, 0)
})

test('what is short, streams, shows a secret or changes something is neither compressed nor tagged', async t => {
  const { k, state } = await open(t)
  const ann = await k.as.token('write', { user: 'ann' })
  const accept = { 'accept-encoding': 'gzip, br' }
  for (const path of ['secret', 'unkept', 'cookie', 'stream']) {
    const { headers, body } = await bytesOf(ann, `/api/library/${path}`, accept)
    t.notHas(headers, { 'content-encoding': /./ })
    t.notHas(headers, { etag: /./ })
    t.match(headers['cache-control'], path === 'stream' ? 'no-cache' : 'no-store')
    t.match(body.toString(), long)
    t.equal((await bytesOf(ann, `/api/library/${path}`, { 'if-none-match': '*' })).status, 200)
  }
  const written = await bytesOf(ann, '/api/library/write', accept, 'POST')
  t.notHas(written.headers, { 'content-encoding': /./ })
  t.equal(written.headers['cache-control'], 'no-store')
  state.text = 'short'
  const short = await bytesOf(ann, '/api/library/plain', accept)
  t.notHas(short.headers, { 'content-encoding': /./ })
  t.match(short.headers.etag, /./, 'but it has a tag')
})

test('the description and the page that shows it are compressed and have tags', async t => {
  const { k } = await open(t)
  const anybody = k.as.anonymous()
  for (const path of ['/api/openapi.json', '/api/docs', '/api/docs/page.js']) {
    const plain = await bytesOf(anybody, path)
    const small = await bytesOf(anybody, path, { 'accept-encoding': 'br' })
    t.equal(small.headers['content-encoding'], 'br', path)
    t.equal(brotliDecompressSync(small.body).toString(), plain.body.toString())
    t.equal(small.headers['content-type'], plain.headers['content-type'])
    t.equal(small.headers['content-security-policy'], plain.headers['content-security-policy'])
    t.equal((await bytesOf(anybody, path, { 'if-none-match': String(small.headers.etag) })).status, 304)
  }
  const before = await anybody.get('/api/openapi.json')
  await k.disable('library')
  const after = await anybody.get('/api/openapi.json', asks(before))
  t.equal(after.status, 200)
  t.notHas(after.body.paths, { '/api/library/plain': {} })
})
