import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { hashSync } from 'bcryptjs'
import type { RouteFeature } from 'busbar/api/domains'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { route, table } from '../../domains/test/driver-contract.js'
import { readAccessLine } from '../log/access-line.js'
import { lastLines } from '../log/file-tail.js'
import { caddyLab, type Visited, visit } from './caddy-lab.js'

const host = 'www.example.com'
const basic = (pair: string): Record<string, string> => ({
  Authorization: `Basic ${Buffer.from(pair).toString('base64')}`
})

/** An application, whatever it is made of. */
async function serve(
  t: Test,
  server: ReturnType<typeof createServer>
): Promise<{ deploymentId: string; containerId: string; host: string; port: number }> {
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    const closed = new Promise(resolve => server.close(resolve))
    server.closeAllConnections()
    await closed
  })
  const { port } = server.address() as AddressInfo
  return { deploymentId: 'd', containerId: 'c', host: '127.0.0.1', port }
}

/** What has come for some bytes when the head of an answer is whole. */
async function said(port: number, bytes: string | Buffer): Promise<string> {
  return await new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes))
    let text = ''
    socket.setTimeout(5000, () => socket.destroy(new Error('no answer within 5 s')))
    socket.on('data', chunk => {
      text += chunk.toString('latin1')
      if (/\r\n\r\n[\s\S]/.test(text)) socket.destroy()
    })
    socket.on('close', () => resolve(text))
    socket.on('error', reject)
  })
}

const echo = (): ReturnType<typeof createServer> =>
  createServer((request, answer) => {
    let length = 0
    request.on('data', chunk => {
      length += chunk.length
    })
    request.on('end', () =>
      answer.end(JSON.stringify({ raw: request.rawHeaders, headers: request.headers, length }))
    )
  })
const headersOf = ({ text }: Visited): IncomingMessage['headers'] =>
  (JSON.parse(text) as { headers: IncomingMessage['headers'] }).headers

test('what a client asks of its connection neither opens a way past the proxy nor takes away what is set there', async t => {
  const { driver, http } = await caddyLab(t)
  const asked: IncomingMessage[] = []
  const server = echo().on('upgrade', (request: IncomingMessage, socket: Socket) => {
    asked.push(request)
    socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\ntunnel')
  })
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  const sets: RouteFeature = {
    type: 'headers',
    request: { set: { 'X-Team': ['a'] }, add: { 'X-More': ['1'] } }
  }
  const deep = { handler: 'headers', request: { set: { 'X-Deep': ['1'] } } }
  await driver.load(
    table(
      route({
        hostname: host,
        applicationId: 'a',
        features: [sets],
        handlers: [{ handler: 'subroute', routes: [{ handle: [deep] }] }]
      })
    )
  )
  for (const upgrade of ['h2c', 'H2C', 'websocket, h2c', 'h2c,x'])
    t.match(
      await said(
        http,
        `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: ${upgrade}\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n`
      ),
      /^HTTP\/1\.1 200 [\s\S]*"x-team":"a"/,
      upgrade
    )
  t.same(asked, [], 'HTTP/2 is offered to no application')
  const answer = await visit(http, {
    hostname: host,
    headers: {
      Connection:
        'close, x-team, X-MORE,X-Deep, X-TX-Teameam, Authorization, Cookie, X-Request-Id, X-Forwarded-For, X-Hop',
      Authorization: 'Bearer mine',
      Cookie: 'own=1',
      'X-Hop': '1',
      'X-Team': 'forged',
      X_Request_Id: 'forged',
      'X-Request_Id': 'forged',
      Transfer_Encoding: 'forged'
    }
  })
  t.match(headersOf(answer), {
    'x-team': 'a',
    'x-more': '1',
    'x-deep': '1',
    authorization: 'Bearer mine',
    cookie: 'own=1',
    'x-request-id': /^[0-9a-f-]{36}$/,
    'x-forwarded-for': '127.0.0.1'
  })
  t.notOk('x-hop' in headersOf(answer), 'what concerns the connection alone is not handed on')
  t.notMatch(answer.text, /forged/)
})

test('a head is as long as the log can hold, and what an owner does to the id of a request changes no trace', async t => {
  const { driver, http, directory } = await caddyLab(t)
  const server = createServer({ maxHeaderSize: 65_536 }, (request, answer) => {
    if (request.url === '/long') answer.setHeader('X-Long', 'x'.repeat(60_000))
    answer.setHeader('X-Request-Id', '00000000-0000-4000-8000-000000000000')
    answer.end(String(request.headers['x-request-id']))
  })
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  const forged: RouteFeature = {
    type: 'headers',
    response: { set: { 'X-Request-Id': ['00000000-0000-4000-8000-000000000000'] } }
  }
  await driver.load(table(route({ hostname: host, applicationId: 'a', features: [forged] })))
  const { headers, text } = await visit(http, { hostname: host })
  t.equal(headers['x-request-id'], text, 'that which the application was given')
  t.equal((await visit(http, { hostname: host, path: '/long' })).status, 502)
  const noise = Buffer.concat([
    Buffer.from(`GET /noise HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nX-Noise: `),
    Buffer.alloc(30_000, 0xff),
    Buffer.from('\r\n\r\n')
  ])
  t.match(await said(http, noise), /^HTTP\/1\.1 200 /)
  const lines = await until(async () => {
    const all = await lastLines(join(directory, 'logs', 'access.log'), 10)
    return all.length >= 3 ? all : undefined
  }, 'the three lines')
  t.same(
    lines.map(line => readAccessLine(line)?.path),
    ['/', '/long', '/noise']
  )
  t.equal(readAccessLine(lines[0] ?? '')?.id, text)
})

test('a visitor who goes away before the answer is in the log as such, and one behind a proxy by its own address', async t => {
  const { driver, http, directory } = await caddyLab(t)
  const waiting: IncomingMessage[] = []
  const server = createServer((request, answer) => {
    if (request.url === '/slow') waiting.push(request)
    else answer.end('ok')
  })
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  await driver.load(table(route({ hostname: host, applicationId: 'a' })))
  const socket = connect(http, '127.0.0.1', () =>
    socket.write(`GET /slow HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: 203.0.113.9, 10.0.0.1\r\n\r\n`)
  )
  await until(() => waiting.length === 1, 'the request to be there')
  socket.destroy()
  const line = await until(
    async () =>
      (await lastLines(join(directory, 'logs', 'access.log'), 5)).find(one => one.includes('/slow')),
    'its line'
  )
  t.match(readAccessLine(line), { path: '/slow', statusCode: 499, clientIp: '127.0.0.1' })
  const isTrusted = (address: string): boolean => /^(?:127|10)\./.test(address)
  t.match(readAccessLine(line, isTrusted), { clientIp: '203.0.113.9' })
  t.match(
    readAccessLine(line, address => address === '127.0.0.1'),
    { clientIp: '10.0.0.1' },
    'as far as who has written it is believed'
  )
})

test('passwords are verified with limits, so that whoever guesses does not take the machine', async t => {
  const { driver, http } = await caddyLab(t)
  const server = echo()
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket => socket.send('hello'))
  t.teardown(() => sockets.close())
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  const hashedPassword = hashSync('secret', 4)
  const expensive = hashSync('secret', 12).replace(/^\$2b/, '$2y')
  const authentication = {
    handler: 'authentication',
    providers: { http_basic: { accounts: [{ username: 'bob', password: hashedPassword }] } }
  }
  await driver.load(
    table(
      route({
        hostname: host,
        applicationId: 'a',
        features: [{ type: 'basic_auth', username: 'ann', hashedPassword }]
      }),
      route({
        id: 'slow',
        hostname: 'slow.example.com',
        applicationId: 'a',
        features: [{ type: 'basic_auth', username: 'ann', hashedPassword: expensive }]
      }),
      route({
        id: 'advanced',
        hostname: 'advanced.example.com',
        applicationId: 'a',
        handlers: [
          {
            handler: 'subroute',
            routes: [{ match: [{ path: ['/in/*'] }], handle: [authentication] }]
          }
        ]
      })
    )
  )
  const right = basic('ann:secret')
  t.equal((await visit(http, { hostname: host, headers: right })).status, 200)
  const cookie = { ...right, Cookie: 'own=1', 'X-Busbar-Accounts': 'forged', Expect: '100-continue' }
  const handed = headersOf(await visit(http, { hostname: host, headers: cookie, method: 'GET' }))
  t.match(handed, { cookie: 'own=1', authorization: right.Authorization }, 'what is asked is not changed')
  t.match(
    await said(
      http,
      `POST / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAuthorization: ${right.Authorization}\r\nContent-Length: 5\r\n\r\nhello`
    ),
    /"length":5/,
    'with its body'
  )
  const socket = new WebSocket(`ws://127.0.0.1:${http}/`, { headers: { Host: host, ...right } })
  t.equal(
    await new Promise((resolve, reject) =>
      socket.once('message', data => resolve(String(data))).once('error', reject)
    ),
    'hello'
  )
  socket.terminate()

  const advanced = async (headers: Record<string, string> = {}, path = '/in/x'): Promise<number> =>
    (await visit(http, { hostname: 'advanced.example.com', path, headers })).status
  t.same([await advanced({}, '/out'), await advanced(), await advanced(basic('bob:secret'))], [200, 401, 200])
  t.equal(await advanced(basic('ann:secret')), 401)

  const guesses = await Promise.all(
    Array.from({ length: 40 }, async (_, n) =>
      visit(http, { hostname: 'slow.example.com', headers: basic(`nobody:${n}`) })
    )
  )
  const counted = (wanted: number): number => guesses.filter(({ status }) => status === wanted).length
  t.ok(counted(429) >= 25, `${counted(429)} of 40 were refused without being verified`)
  t.equal(counted(429) + counted(401), 40)
  t.equal((await visit(http, { hostname: host, headers: right })).status, 200, 'what is known already passes')
})

test('hints before an answer set no cookie and change nothing of what follows', async t => {
  const { driver, http } = await caddyLab(t)
  const server = createServer()
  server.on('request', (request, answer) => {
    request.socket.write(
      'HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\nSet-Cookie: token=x\r\n\r\n'
    )
    answer.setHeader('Set-Cookie', ['token=x', 'own=1'])
    answer.end('ok')
  })
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  await driver.load(table(route({ hostname: host, applicationId: 'a' })))
  const text = await said(http, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  t.notMatch(text, /set-cookie: *token=/i)
  const final = (await visit(http, { hostname: host })).headers
  t.same(
    final['set-cookie']?.filter(cookie => cookie !== ''),
    ['own=1']
  )
  t.match(final['x-request-id'], /^[0-9a-f-]{36}$/)
})

test('what an owner writes into a rewrite tells nothing of the machine', async t => {
  const { driver, http } = await caddyLab(t)
  const server = createServer((request, answer) => answer.end(request.url))
  await driver.retarget('a', new Map([[null, await serve(t, server)]]))
  const rewrite = { handler: 'rewrite', uri: '/v2{http.request.uri.path}?{http.request.uri.query}' }
  await driver.load(table(route({ hostname: host, applicationId: 'a', handlers: [rewrite] })))
  const asked = async (path: string): Promise<string> => (await visit(http, { hostname: host, path })).text
  t.equal(await asked('/x?y=1'), '/v2/x?y=1')
  for (const path of ['/x?y={env.HOME}', '/%7Benv.HOME%7D', '/{env.HOME}', '/x?{env.HOME}'])
    t.match(await asked(path), /env\.HOME/, path)
  t.match(
    await asked('/%3Fa=%7Benv.HOME%7D'),
    /^\/v2\/(?:%3Fa=%7Benv\.HOME%7D)?$/,
    'what would be a query there is dropped, or stays a path'
  )
})
