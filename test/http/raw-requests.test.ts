import { connect, type Socket } from 'node:net'
import { createTestKernel, type TestClient, type TestKernel, until } from 'busbar/sdk/testing'
import { test } from 'tap'

let k: TestKernel
let admin: TestClient
let credential: string

/** What the server says to these bytes until it closes the connection; `more` is sent piece by piece. */
async function speak(
  bytes: string | Buffer,
  { more = [], hangUp = false }: { more?: ReadonlyArray<string | Buffer>; hangUp?: boolean } = {}
): Promise<string> {
  const socket: Socket = connect(k.port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(bytes)
  for (const piece of more) {
    await new Promise(resolve => setImmediate(resolve))
    socket.write(piece)
  }
  if (hangUp) {
    await new Promise<void>(resolve => {
      socket.end(resolve)
    })
    socket.destroy()
    return ''
  }
  let answer = ''
  const late = setTimeout(() => {
    answer += 'THE SERVER SAYS NOTHING'
    socket.destroy()
  }, 25_000)
  socket.on('data', chunk => {
    answer += String(chunk)
  })
  await new Promise(resolve => socket.once('close', resolve))
  clearTimeout(late)
  return answer
}

const head = (line: string, ...headers: string[]): string =>
  `${[line, 'Host: localhost', 'Connection: close', ...headers].join('\r\n')}\r\n\r\n`
const post = (...headers: string[]): string =>
  head('POST /api/projects HTTP/1.1', credential, 'Content-Type: application/json', ...headers)

/** By what they do: the bytes, and the statuses that are an honest answer (none: the connection is closed). */
const requests = (): ReadonlyArray<
  readonly [what: string, bytes: string | Buffer, statuses: readonly number[]]
> => [
  ['two lengths', `${post('Content-Length: 2', 'Content-Length: 3')}{}`, [400]],
  ['a length and chunks', `${post('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n`, [400]],
  ['a negative length', post('Content-Length: -1'), [400]],
  ['a length that is no number', post('Content-Length: 0x10'), [400]],
  ['an enormous length', post('Content-Length: 99999999999999999999'), [400, 413]],
  ['a length beyond the limit', post('Content-Length: 5000000'), [413]],
  [
    'chunks beyond the limit',
    `${post('Transfer-Encoding: chunked')}${`10000\r\n${' '.repeat(0x10000)}\r\n`.repeat(20)}0\r\n\r\n`,
    [413]
  ],
  ['a chunk without a size', `${post('Transfer-Encoding: chunked')}zz\r\n{}\r\n0\r\n\r\n`, [400]],
  ['a chunk that lies about its size', `${post('Transfer-Encoding: chunked')}1\r\n{}\r\n0\r\n\r\n`, [400]],
  ['an unknown transfer coding', `${post('Transfer-Encoding: gzip, chunked')}0\r\n\r\n`, [400, 501]],
  ['chunked twice', `${post('Transfer-Encoding: chunked', 'Transfer-Encoding: chunked')}0\r\n\r\n`, [400]],
  ['no host', 'GET /api/version HTTP/1.1\r\nConnection: close\r\n\r\n', [400]],
  ['two hosts', head('GET /api/version HTTP/1.1', 'Host: elsewhere'), [400]],
  ['a host that is none', 'GET /api/version HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n', [400]],
  [
    'chunks in HTTP/1.0',
    'POST /api/auth/login HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    [400]
  ],
  [
    'an upgrade with two hosts',
    'GET /api/ws HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    [400]
  ],
  [
    'an upgrade without a host',
    'GET /api/ws HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    [400]
  ],
  [
    'an upgrade in HTTP/1.0',
    'GET /api/version HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    [200]
  ],
  [
    'an upgrade that announces trailers',
    'GET /api/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTrailer: X\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    [401]
  ],
  ['a header without a colon', head('GET /api/version HTTP/1.1', 'nonsense'), [400]],
  ['NUL in a header', head('GET /api/version HTTP/1.1', 'X-A: a\u0000b'), [400]],
  ['a bare carriage return in a header', head('GET /api/version HTTP/1.1', 'X-A: a\rb'), [400]],
  ['a space before the colon', head('GET /api/version HTTP/1.1', 'Content-Length : 3'), [400]],
  ['headers beyond the limit', head('GET /api/version HTTP/1.1', `X-A: ${'a'.repeat(60_000)}`), [431]],
  [
    'a thousand headers',
    head('GET /api/version HTTP/1.1', ...Array.from({ length: 1_000 }, (_, n) => `X-${n}: a`)),
    [431]
  ],
  [
    'an upgrade of a thousand headers',
    `GET /api/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${'X: a\r\n'.repeat(1_000)}\r\n`,
    [431]
  ],
  ...['/api/ws', '/nothing', '/api/ws/%zz'].flatMap(path =>
    ['POST', 'GET'].flatMap(method =>
      ['Content-Length: 5\r\nContent-Type: a/b', 'Transfer-Encoding: chunked'].map(
        framing =>
          [
            `an upgrade with a body: ${method} ${path} ${framing}`,
            `${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${framing}\r\n\r\n0\r\n\r\n`,
            [400]
          ] as const
      )
    )
  ),
  ['an address beyond the limit', head(`GET /api/${'a'.repeat(60_000)} HTTP/1.1`), [431]],
  ['an absolute address', head('GET http://elsewhere.example.com/api/version HTTP/1.1'), [200, 400, 404]],
  ['an address without a slash', head('GET api/version HTTP/1.1'), [400, 404]],
  ['two slashes', head('GET //api/version HTTP/1.1'), [404]],
  ['a fragment', head('GET /api/version#x HTTP/1.1'), [200, 400]],
  [
    'bytes that are no text',
    Buffer.concat([
      Buffer.from('GET /api/'),
      Buffer.from([0xff, 0xfe]),
      Buffer.from(' HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
    ]),
    [400, 404]
  ],
  ['a star', head('OPTIONS * HTTP/1.1'), [204, 400, 404]],
  ['a tunnel', head('CONNECT example.com:80 HTTP/1.1'), []],
  ['an unknown method', head('BREW /api/version HTTP/1.1'), [400]],
  ['TRACE', head('TRACE /api/version HTTP/1.1'), [404, 405]],
  ['an unknown version', head('GET /api/version HTTP/9.9'), [400, 505]],
  ['HTTP/1.0', 'GET /api/version HTTP/1.0\r\n\r\n', [200]],
  ['HTTP/2 without asking', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
  ['TLS', Buffer.from([0x16, 3, 1, 0, 5, 1, 0, 0, 1, 3]), [400]],
  ['an expectation nobody has', head('GET /api/version HTTP/1.1', 'Expect: miracles'), [200, 417]],
  [
    'an upgrade to something else',
    'GET /api/version HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: carrier-pigeon\r\n\r\n',
    [200, 400, 404, 426]
  ],
  [
    'a WebSocket without a key',
    `GET /api/ws HTTP/1.1\r\nHost: x\r\n${credential}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`,
    [400]
  ],
  [
    'a WebSocket of another version',
    `GET /api/ws HTTP/1.1\r\nHost: x\r\n${credential}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 7\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    [400, 426]
  ],
  [
    'a WebSocket where there is none',
    'GET /api/projects HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    [401, 404]
  ],
  [
    'an upgrade without a host where there is no WebSocket',
    'GET /healthz HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    [400]
  ],
  [
    'a WebSocket by a path that cannot be decoded',
    'GET /api/ws/%zz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
    [400, 404]
  ],
  [
    'two credentials',
    head('GET /api/projects HTTP/1.1', 'Authorization: Bearer busbar_pat_wrong', credential),
    [401]
  ],
  [
    'two content types',
    `${head('POST /api/projects HTTP/1.1', credential, 'Content-Type: text/plain', 'Content-Type: application/json', 'Content-Length: 2')}{}`,
    [400, 415]
  ]
]

test('what is hardly HTTP is answered with a 4xx or a closed connection, and never with silence', async t => {
  k = await createTestKernel()
  t.teardown(async () => {
    await k.close()
  })
  admin = await k.as.session()
  credential = `Authorization: ${(await k.as.token('write')).credential.authorization ?? ''}`
  for (const [what, bytes, statuses] of requests()) {
    k.resetRateLimits()
    const answer = await speak(bytes)
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0)
    t.ok(statuses.length === 0 ? answer === '' : statuses.includes(status), `${what}: ${status}`, {
      answer: answer.slice(0, 300)
    })
    t.notMatch(answer, /\bat .*\.(js|ts):\d+/)
    t.notMatch(answer, /statusCode/, 'it is worded as every answer of the platform is')
    t.equal((await admin.get('/api/projects')).status, 200)
  }

  await t.test('what is after a malformed request is not taken for another', async t => {
    const hidden = 'GET /api/projects HTTP/1.1\r\nHost: x\r\n\r\n'
    const answer = await speak(`${post('Content-Length: 5', 'Transfer-Encoding: chunked')}0\r\n\r\n${hidden}`)
    t.equal(answer.match(/HTTP\/1\.1/g)?.length, 1)
    const refused = await speak(`${post(`Content-Length: ${5_000_000}`)}${hidden}`)
    t.equal(
      refused.match(/HTTP\/1\.1/g)?.length,
      1,
      'nor what stands in the place of a body that was refused'
    )
  })

  await t.test('pipelined requests are answered one by one, in order', async t => {
    const one = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`
    const answer = await speak(
      Array.from({ length: 20 }, (_, n) => one(n % 2 === 0 ? '/api/version' : '/api/nowhere')).join('') +
        head('GET /healthz HTTP/1.1')
    )
    t.same(
      [...answer.matchAll(/HTTP\/1\.1 (\d+)/g)].map(match => match[1]),
      [...Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? '200' : '404')), '200']
    )
  })

  await t.test('an upgrade behind a request that is still being answered ends the connection', async t => {
    const upgrade = 'GET /api/ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
    const answer = await speak(`GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n${upgrade}`)
    t.ok((answer.match(/HTTP\/1\.1/g)?.length ?? 0) <= 1)
    t.notMatch(answer, /NOTHING/)
  })

  await t.test('a body that comes byte by byte is a body like any other', async t => {
    const body = JSON.stringify({ name: 'Slow', slug: 'slow' })
    const answer = await speak(post(`Content-Length: ${body.length}`), { more: [...body] })
    t.match(answer, /^HTTP\/1\.1 201/)
  })

  await t.test("whoever hangs up in the middle of a body, or never ends it, is in nobody's way", async t => {
    const slow = Array.from({ length: 100 }, () => connect(k.port, '127.0.0.1'))
    for (const socket of slow) {
      socket.on('error', () => {})
      socket.write(`${post('Content-Length: 100')}{"name"`)
    }
    for (let n = 0; n < 10; n++) await speak(`${post('Content-Length: 100')}{"name"`, { hangUp: true })
    for (let n = 0; n < 20; n++) {
      k.resetRateLimits()
      t.equal((await admin.get('/api/projects')).status, 200)
    }
    for (const socket of slow) socket.destroy()
    await until(() => k.inFlight('projects') === 0, 'no request is under way')
    t.equal(k.inFlight('projects'), 0, 'and nothing of them is left')
  })
})
