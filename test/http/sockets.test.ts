import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'
import { allow, definePlugin, Problem } from 'busbar/sdk'
import { createTestKernel, TestClient, type TestKernel } from 'busbar/sdk/testing'
import { test } from 'tap'
import { WebSocket } from 'ws'

let k: TestKernel
const echo = definePlugin({
  id: 'echo',
  sockets(socket) {
    socket({
      url: '/api/ws/echo/:name',
      summary: 'Echo',
      access: allow.session({ project: 'none' }),
      handler: async (duplex, { params, caller }) => {
        await duplex.send(`${params.name ?? ''} ${caller.user.username}`)
        for await (const message of duplex.messages) {
          if (String(message) === 'bye') return
          if (String(message) === 'throw') throw new Error('it failed')
          if (String(message) === 'refuse') throw new Problem(503, 'E_AWAY', 'what it needs is away')
          await duplex.send(`${String(message)}!`)
        }
      }
    })
  }
})

test('a platform starts', async () => {
  k = await createTestKernel({
    inline: [{ manifest: { id: 'echo' }, definition: echo }],
    environment: { CORS_ORIGINS: 'https://ui.example.com', MAX_WEBSOCKET_CONNS_PER_USER: '3' }
  })
})

test('a socket without a good credential is refused with 401 before the upgrade', async t => {
  await t.rejects(k.socket(k.as.anonymous()), /401/)
  await t.rejects(k.socket(new TestClient(k.url, { authorization: 'Bearer busbar_pat_nothing' })), /401/)
})

test('the address of a WebSocket says what it is to who asks for it otherwise', async t => {
  for (const path of ['/api/ws', '/api/ws/echo/ada']) {
    for (const anyone of [k.as.anonymous(), await k.as.session()]) {
      const { status, body, headers } = await anyone.get(path)
      t.match([status, body.code, headers.upgrade], [426, 'E_UPGRADE_REQUIRED', 'websocket'], path)
      t.match(body.error, /^this address is a WebSocket: connect to it by wss?:/)
    }
    t.match(await k.as.anonymous().post(path), {
      status: 405,
      headers: { allow: 'GET, HEAD' },
      body: { code: 'E_METHOD' }
    })
  }
  t.match(await k.as.anonymous().get('/api/ws/nothing'), { status: 404, body: { code: 'E_NOT_FOUND' } })
})

test('an upgrade that nobody takes is answered, and its socket closed', async t => {
  for (const path of ['/nothing', '/%zz', '/api/ws/%zz', '/api/ws/nothing']) {
    const socket = connect(k.port, '127.0.0.1')
    let answer = ''
    socket.on('data', (data: Buffer) => {
      answer += data.toString()
    })
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`)
    await once(socket, 'close', { signal: AbortSignal.timeout(2000) })
    t.match(answer, /^HTTP\/1\.1 (400|404) /, path)
  }
})

test('a handshake that is not valid is refused as everything else is, with what is wrong with it', async t => {
  const { credential } = await k.as.session()
  const good = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
  const bad: ReadonlyArray<readonly [fault: RegExp, headers: Record<string, string>]> = [
    [/Sec-WebSocket-Key/, { 'sec-websocket-version': '13' }],
    [/Sec-WebSocket-Key/, { ...good, 'sec-websocket-key': 'short' }],
    [/Sec-WebSocket-Version/, { ...good, 'sec-websocket-version': '99' }],
    [/Sec-WebSocket-Protocol/, { ...good, 'sec-websocket-protocol': 'a, , b' }]
  ]
  for (const [fault, headers] of bad)
    for (const path of ['/api/ws', '/api/ws/echo/ada']) {
      const request = httpRequest(`${k.url}${path}`, {
        headers: { ...credential, ...headers, connection: 'Upgrade', upgrade: 'websocket' }
      }).end()
      const [response] = (await once(request, 'response')) as [IncomingMessage]
      t.match(response, {
        statusCode: 400,
        headers: {
          'content-type': /^application\/json/,
          'x-request-id': /./,
          'x-content-type-options': 'nosniff',
          'sec-websocket-version': '13, 8',
          connection: 'close'
        }
      })
      t.match(await json(response), { code: 'E_WEBSOCKET_HANDSHAKE', error: fault, remedy: /RFC 6455/ })
    }
})

test('an offer to speak HTTP/2 is ignored: the request is answered with its body read, and the connection ends', async t => {
  const socket = connect(k.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (data: Buffer) => {
    answer += data.toString()
  })
  socket.write(
    'POST /api/auth/login HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n{"email":1}'
  )
  await once(socket, 'close', { signal: AbortSignal.timeout(10_000) })
  t.match(answer, /^HTTP\/1\.1 400 [\s\S]*connection: close[\s\S]*password is required/i)
})

test('a token in the query is never a credential', async t => {
  const token = (await k.as.token('read')).credential.authorization?.slice('Bearer '.length) ?? ''
  await t.rejects(k.socket(k.as.anonymous(), `/api/ws?token=${token}`), /401/)
})

test('a token needs the scope read', async t => {
  await t.rejects(k.socket(await k.as.token('metrics')), /403/)
  const socket = await k.socket(await k.as.token('read'))
  await socket.close()
})

test('a page of another origin is refused; ours, those of CORS_ORIGINS and clients without Origin are not', async t => {
  const { credential } = await k.as.session()
  const from = async (origin: string) => {
    const socket = await k.socket(new TestClient(k.url, { ...credential, origin }))
    await socket.close()
  }
  await t.rejects(from('https://evil.example.com'), /403/)
  await t.resolves(from('https://ui.example.com'))
  await t.resolves(from(k.url))
})

test('a subscription hears what is published after it, and a refused one is told on its channel', async t => {
  const socket = await k.socket(await k.as.session('member'))
  socket.subscribe('platform')
  socket.subscribe('nowhere')
  socket.subscribe('build-logs:6f1c2a52-9f5e-4b7e-8a64-1f0f3b1c9d11')
  t.same(await socket.next(frame => frame.channel === 'nowhere'), {
    channel: 'nowhere',
    event: 'error',
    data: { error: 'access denied' }
  })
  t.match(await socket.next(frame => frame.channel.startsWith('build-logs')), {
    event: 'error',
    data: { error: 'access denied' }
  })
  k.publish('platform', 'update', { updating: true })
  t.same(await socket.next(frame => frame.channel === 'platform'), {
    channel: 'platform',
    event: 'update',
    data: { updating: true }
  })
  await socket.close()
})

test('a connection over the cap is accepted and closed with 1013', async t => {
  const member = await k.as.session('capped')
  const open = [await k.socket(member), await k.socket(member), await k.socket(member)]
  const fourth = await k.socket(member)
  t.equal(await fourth.closed(), 1013)
  await open[0]?.close()
  const again = await k.socket(member)
  again.subscribe('nowhere')
  t.ok(await again.next(frame => frame.channel === 'nowhere'))
  for (const socket of [...open, again]) await socket.close()
})

test("a plugin's own socket is guarded like a route and speaks both ways", async t => {
  const { credential } = await k.as.session()
  const url = `${k.url.replace('http', 'ws')}/api/ws/echo/hello`
  await t.rejects(k.socket(k.as.anonymous(), '/api/ws/echo/hello'), /401/)
  await t.rejects(k.socket(await k.as.token('write'), '/api/ws/echo/hello'), /403/)
  await t.rejects(k.socket(await k.as.session(), '/api/ws/nowhere'), /404/)
  const socket = new WebSocket(url, { headers: credential })
  const hear = async () => String((await once(socket, 'message'))[0])
  t.equal(await hear(), 'hello admin')
  socket.send('one')
  t.equal(await hear(), 'one!')
  socket.send('bye')
  const [code] = (await once(socket, 'close')) as [number]
  t.equal(code, 1000)
})

test("a plugin's own socket whose handler throws closes with 1011, so that its client comes back", async t => {
  const { credential } = await k.as.session()
  for (const message of ['throw', 'refuse']) {
    const socket = new WebSocket(`${k.url.replace('http', 'ws')}/api/ws/echo/hello`, { headers: credential })
    await once(socket, 'message')
    const closed = once(socket, 'close')
    socket.send(message)
    t.equal((await closed)[0], 1011, message)
  }
})

test("a plugin's own socket closes when the plugin is turned off", async t => {
  const { credential } = await k.as.session()
  const socket = new WebSocket(`${k.url.replace('http', 'ws')}/api/ws/echo/hello`, { headers: credential })
  await once(socket, 'message')
  const closed = once(socket, 'close')
  await k.disable('echo')
  t.equal((await closed)[0], 1001)
  await t.rejects(k.socket(await k.as.session(), '/api/ws/echo/hello'), /404/)
})

test('the platform stops with sockets open', async t => {
  const socket = await k.socket(await k.as.session())
  await k.close()
  t.ok(await socket.closed())
})
