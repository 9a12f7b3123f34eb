/** What the client makes of answers that are not as they should be, and of pages and addresses of every kind. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createClient } from 'busbar/client'
import { allow, definePlugin, pageOf, Type } from 'busbar/sdk'
import { createTestKernel } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'

/** A client of a server that answers like this. */
async function clientOf(t: Test, answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return createClient({ url: `http://127.0.0.1:${port}`, token: 'x', timeoutMs: 2_000 })
}

const begins = (status: number, response: ServerResponse): void => {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': '100' })
  response.write('{"a":')
}

test('an answer that breaks off is none, and the error says of what', async t => {
  for (const status of [200, 500]) {
    const client = await clientOf(t, (_, response) => {
      begins(status, response)
      setTimeout(() => response.destroy(), 20)
    })
    await t.rejects(client.get('/api/projects'), {
      name: 'NetworkError',
      method: 'GET',
      address: /\/api\/projects$/,
      code: 'UND_ERR_SOCKET'
    })
  }
})

test('an answer that does not end in time is none, unless who asks has ended it', async t => {
  const client = await clientOf(t, (_, response) => {
    begins(200, response)
  })
  await t.rejects(client.get('/api/projects'), { name: 'NetworkError', code: 'TIMEOUT' })
  const own = AbortSignal.timeout(100)
  await t.rejects(client.get('/api/projects', { signal: own }), { name: 'TimeoutError' })
})

test('what another server answers is told in few words', async t => {
  const page = '<html>'.repeat(100_000)
  const broken = await clientOf(t, (_, response) => {
    response.writeHead(502, { 'content-type': 'text/html' }).end(page)
  })
  const error = await broken.get('/api/projects').catch((thrown: unknown) => thrown as Error)
  t.match(error, { name: 'ApiError', status: 502, code: 'E_UNKNOWN' })
  t.ok((error as Error).message.length < 1_000)
  const signIn = await clientOf(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page)
  })
  await t.rejects(signIn.get('/api/projects'), { name: 'ApiError', status: 200, code: 'E_UNKNOWN' })
  const moved = await clientOf(t, (_, response) => {
    response.writeHead(308, { location: 'https://busbar.example.com/api/projects' }).end()
  })
  await t.rejects(moved.get('/api/projects'), {
    name: 'ApiError',
    message: /308 .*it leads to https:\/\/busbar\.example\.com\/api\/projects.* give that as url/
  })
})

test('a header takes the place of the usual one, in whatever case it is given', async t => {
  const seen: Array<string | undefined> = []
  const client = await clientOf(t, (request, response) => {
    seen.push(request.headers['content-type'], request.headers.authorization)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const headers = { 'Content-Type': 'application/json', Authorization: 'Bearer other' }
  await client.post('/api/projects', { body: { name: 'a', slug: 'a' }, headers })
  t.same(seen, ['application/json', 'Bearer other'])
})

test('a list is read to its end, however small its pages are', async t => {
  const numbers = definePlugin({
    id: 'numbers',
    routes(route) {
      route.list({
        url: '/api/numbers',
        summary: 'Count',
        access: allow.public('a test'),
        items: Type.Integer(),
        page: { fallback: 5, max: 20 },
        handler: ({ page }) =>
          pageOf(
            page,
            Array.from({ length: 12 }, (_, at) => at)
          )
      })
    }
  })
  const k = await createTestKernel({ inline: [{ manifest: { id: 'numbers' }, definition: numbers }] })
  t.teardown(() => k.close())
  const read: unknown[] = []
  for await (const one of createClient({ url: k.url }).each('/api/numbers' as '/api/projects')) read.push(one)
  t.same(
    read,
    Array.from({ length: 12 }, (_, at) => at)
  )
})

test('an address with what fits no platform is refused without showing it', t => {
  for (const url of ['http://h?token=secret', 'http://h/#secret', 'http://h?', 'http://user:secret@h']) {
    try {
      createClient({ url })
      t.fail(url)
    } catch (error) {
      t.match(error, { name: 'TypeError', message: /^url has / })
      t.notMatch(String(error), /secret/)
    }
  }
  t.end()
})

test('in a browser an empty address is that of its page', t => {
  Object.assign(globalThis, { location: { origin: 'https://busbar.example.com' } })
  t.teardown(() => Reflect.deleteProperty(globalThis, 'location'))
  t.equal(createClient({ url: '' }).url, 'https://busbar.example.com')
  t.end()
})
