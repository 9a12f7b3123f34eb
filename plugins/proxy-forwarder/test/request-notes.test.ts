import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import type { ApplicationTargets } from 'busbar/api/domains'
import type { ProxiedRequest } from 'busbar/api/requests'
import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { WebSocketServer } from 'ws'
import { ask, type Origin, startOrigin } from '../../direct/test/origin.js'
import { route, table } from '../../domains/test/driver-contract.js'
import { ForwarderDriver } from '../forwarder-driver.js'
import { RequestNotes } from '../request-notes.js'

const host = 'www.example.com'

interface Lab {
  readonly port: number
  readonly driver: ForwarderDriver
  readonly notes: ProxiedRequest[]
  /** The only note that there is, which it takes away. */
  note(): Promise<ProxiedRequest>
}

/** A forwarder with one route, and who keeps what it notes. */
async function open(t: Test, origin: Origin | null, path = '/'): Promise<Lab> {
  const notes: ProxiedRequest[] = []
  const recorder = { record: (request: ProxiedRequest) => void notes.push(request) }
  const driver = new ForwarderDriver({
    settings: { bind: '127.0.0.1', port: 0 },
    notes: new RequestNotes({ get: () => recorder, whileAvailable: async () => {} }),
    clock: testClock(),
    instance: { ownProxy: { header: 'x-busbar-proxy', value: 'secret' } }
  })
  t.teardown(async () => await driver.stop())
  const redirect = { type: 'redirect', from: '/moved', to: '/found', statusCode: 302 } as const
  await driver.load(table(route({ hostname: host, applicationId: 'a', path, features: [redirect] })))
  const targets: ApplicationTargets | null = origin === null ? null : new Map([[null, origin.target]])
  await driver.retarget('a', targets)
  return {
    port: driver.ports().http ?? 0,
    driver,
    notes,
    async note() {
      await until(() => notes.length > 0, 'a request is noted')
      t.equal(notes.length, 1)
      return notes.splice(0)[0] as ProxiedRequest
    }
  }
}

test('a request is noted with what it was and what became of it, and its application has the same id', async t => {
  const ids: unknown[] = []
  const origin = await startOrigin((request, response) => {
    ids.push(request.headers['x-request-id'])
    request.resume()
    request.on('end', () => {
      if (request.url === '/cut') {
        response.writeHead(200, { 'content-length': 1000 })
        return response.write('x'.repeat(100), () => response.destroy())
      }
      response.writeHead(request.url === '/none' ? 204 : 201)
      response.end(request.url === '/none' ? undefined : 'y'.repeat(100_000))
    })
  })
  t.teardown(() => origin.close())
  const lab = await open(t, origin)
  const headers = {
    Host: `WWW.Example.COM:${lab.port}`,
    'User-Agent': 'curl/8',
    'X-Request-Id': randomUUID()
  }
  const before = Date.now()
  const answer = await ask(lab.port, { path: '/a?b=1', method: 'POST', headers, body: 'z'.repeat(70_000) })
  t.equal(answer.status, 201)
  const note = await lab.note()
  t.match(note, {
    hostname: host,
    method: 'POST',
    path: '/a?b=1',
    statusCode: 201,
    requestSize: 70_000,
    responseSize: 100_000,
    clientIp: '127.0.0.1',
    userAgent: 'curl/8',
    applicationId: 'a'
  })
  t.same(ids, [note.id], 'not that of the client')
  t.not(note.id, headers['X-Request-Id'])
  t.ok(note.at >= before && note.at <= Date.now() && note.latencyMs >= 0 && note.latencyMs < 30_000)

  await ask(lab.port, { path: '/', method: 'HEAD', headers: { Host: host } })
  t.match(await lab.note(), {
    method: 'HEAD',
    statusCode: 201,
    requestSize: 0,
    responseSize: 0,
    userAgent: null
  })
  await ask(lab.port, {
    path: '/none',
    headers: { Host: host, 'Transfer-Encoding': 'chunked' },
    method: 'PUT',
    body: 'zz'
  })
  t.match(await lab.note(), { statusCode: 204, requestSize: 2, responseSize: 0 })
  await ask(lab.port, { path: '/cut', headers: { Host: host } }).catch(() => {})
  t.match(await lab.note(), { statusCode: 200, responseSize: 100 }, 'an answer that is cut off')
  t.equal(new Set(ids).size, 4)
})

test('what the forwarder answers itself is noted too, with whose it is', async t => {
  const lab = await open(t, null, '/shop')
  const sizeOf = async (path: string, hostname = host): Promise<number> =>
    Buffer.byteLength((await ask(lab.port, { path, headers: { Host: hostname } })).body)
  const cases = [
    ['/', 'other.example.com', 404, null],
    ['/', host, 404, null],
    ['/shop', host, 503, 'a'],
    ['/shop/../x', host, 400, 'a']
  ] as const
  for (const [path, hostname, statusCode, applicationId] of cases) {
    const responseSize = await sizeOf(path, hostname)
    t.ok(responseSize > 10)
    t.match(await lab.note(), { hostname, path, statusCode, applicationId, requestSize: 0, responseSize })
  }
  const whole = await open(t, null)
  await ask(whole.port, { path: '/moved', headers: { Host: host } })
  t.match(await whole.note(), { statusCode: 302, applicationId: 'a' })
})

test('what the platform is asked is noted for nobody, whoever has a wildcard above its name', async t => {
  const platform = await startOrigin((_request, answer) => answer.end('platform'))
  t.teardown(() => platform.close())
  const lab = await open(t, null)
  const { host: at, port } = platform.target
  await lab.driver.load({
    ...table(route({ hostname: '*.example.com', applicationId: 'a' })),
    platform: {
      hostname: 'panel.example.com',
      forceHttps: false,
      tls: { mode: 'off' },
      upstream: { host: at, port }
    }
  })
  for (const hostname of ['panel.example.com', 'PANEL.example.com.']) {
    t.equal((await ask(lab.port, { path: '/api/x', headers: { Host: hostname } })).body, 'platform')
    t.match(await lab.note(), { path: '/api/x', applicationId: null })
  }
  await ask(lab.port, { path: '/', headers: { Host: 'other.example.com' } })
  t.match(await lab.note(), { applicationId: 'a' })
})

test('a client that goes away before the answer is noted as such, and an application that fails as what was answered', async t => {
  let asked = 0
  const origin = await startOrigin(request => {
    asked += 1
    if (request.url === '/break') request.socket.destroy()
  })
  t.teardown(() => origin.close())
  const lab = await open(t, origin)
  const client = connect({ host: '127.0.0.1', port: lab.port })
  client.write(`GET /wait HTTP/1.1\r\nHost: ${host}\r\n\r\n`)
  await until(() => asked === 1, 'the application has it')
  client.destroy()
  t.match(await lab.note(), { path: '/wait', statusCode: 499, responseSize: 0 })
  await ask(lab.port, { path: '/break', method: 'POST', headers: { Host: host } })
  t.match(await lab.note(), { path: '/break', statusCode: 502 })
})

test('a WebSocket is noted when it is open, and one that is refused with the answer', async t => {
  const origin = await startOrigin((_, response) => response.end())
  t.teardown(() => origin.close())
  let id: unknown
  const sockets = new WebSocketServer({
    server: origin.server,
    verifyClient: ({ req }: { req: IncomingMessage }) => req.url !== '/no'
  })
  sockets.on('connection', (socket, request) => {
    id = request.headers['x-request-id']
    socket.on('error', () => {})
  })
  const lab = await open(t, origin)
  const upgrade = async (path: string) => {
    const client = connect({ host: '127.0.0.1', port: lab.port })
    client.on('error', () => {})
    client.write(
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Request-Id: mine\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`
    )
    await once(client, 'data')
    return client
  }
  const client = await upgrade('/live?token=a')
  const note = await lab.note()
  t.match(note, {
    path: '/live?token=a',
    statusCode: 101,
    requestSize: null,
    responseSize: null,
    applicationId: 'a'
  })
  await until(() => id !== undefined, 'the application has it')
  t.equal(id, note.id)
  client.destroy()
  const refused = await upgrade('/no')
  refused.destroy()
  t.match(await lab.note(), { path: '/no', statusCode: 401, responseSize: 12 })
  await lab.driver.retarget('a', null)
  const none = await upgrade('/later')
  none.destroy()
  t.match(await lab.note(), { path: '/later', statusCode: 503 })
  t.same(lab.notes, [], 'and none again when it ends')
})
