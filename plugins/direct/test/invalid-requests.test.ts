import type { IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { ForwardingLimits } from '../../../sdk/http1/forwarding/route.js'
import { type Forwarder, openForwarder } from '../forwarder.js'
import { ask, speak, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }
const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
const request = (line: string, ...headers: readonly string[]): string =>
  [`${line} HTTP/1.1`, ...headers, '', ''].join('\r\n')

/** A forwarder and what its container was asked. */
async function forwarding(
  t: Test,
  limits: Partial<ForwardingLimits> = {}
): Promise<{ readonly forwarder: Forwarder; readonly seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = []
  const origin = await startOrigin((incoming, response) => {
    seen.push(incoming)
    incoming.resume()
    if (incoming.url !== '/slow') response.end('answered')
  })
  origin.server.on('upgrade', (incoming, socket) => {
    seen.push(incoming)
    socket.on('error', () => {})
    if (incoming.url !== '/slow')
      socket.end('HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  })
  const forwarder = await openForwarder(here, origin.target, limits)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  return { forwarder, seen }
}

const valuesOf = ({ rawHeaders }: IncomingMessage, name: string): string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name)

test('a head that is not valid is refused with 400, with an upgrade and without, and reaches no container', async t => {
  const { forwarder, seen } = await forwarding(t)
  for (const more of [[], upgrade]) {
    for (const head of [
      request('GET /', 'Host: a', 'Host: b', ...more),
      request('GET /', 'Host: a', 'hOST: a', ...more),
      request('GET /', ...more),
      request('GET /', 'Host: a b', ...more),
      request('GET /', 'Host: a/b', ...more),
      request('GET /', 'Host: user@a', ...more),
      request('GET /', 'Host: a, b', ...more),
      request('GET *', 'Host: a', ...more),
      request('GET http://user:secret@a/', 'Host: a', ...more),
      request('GET /', 'Host: a', 'X-A: a\u0000b', ...more),
      request('GET /', 'Host: a', 'X A: b', ...more),
      request('GET /', 'Host: a', 'X-A: b', ' folded: c', ...more)
    ]) {
      const { said, isClosed } = await speak(forwarder.port, head)
      t.match(said, /^HTTP\/1\.1 400 /, JSON.stringify(head))
      t.ok(isClosed)
    }
  }
  const coded = 'POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'
  t.match((await speak(forwarder.port, coded)).said, /^HTTP\/1\.1 400 /)
  t.match(
    (await speak(forwarder.port, `${request('GET /', 'Host: a', ...upgrade, 'Content-Length: 5')}hello`))
      .said,
    /^HTTP\/1\.1 400 /
  )
  t.equal(seen.length, 0)
})

test('what follows a request without a Host reaches no container', async t => {
  const { forwarder, seen } = await forwarding(t)
  const { said, isClosed } = await speak(forwarder.port, request('GET /') + request('GET /slow', 'Host: a'))
  t.match(said, /^HTTP\/1\.1 400 /)
  t.equal(said.match(/HTTP\/1\.1/g)?.length, 1)
  t.ok(isClosed)
  t.equal(seen.length, 0)
})

test("what concerns the client's connection only is left out, with an upgrade and without", async t => {
  const { forwarder, seen } = await forwarding(t)
  const stray = [
    'Host: a',
    'Trailer: X',
    'TE: trailers',
    'Keep-Alive: 5',
    'Proxy-Authorization: Basic x',
    'Proxy-Whatever: x',
    'Proxy: http://evil',
    'HTTP2-Settings: x',
    'Connection: X-Hop',
    'X-Hop: 1'
  ]
  t.match(
    (await speak(forwarder.port, request('GET /', ...stray, 'Connection: close'))).said,
    /^HTTP\/1\.1 200 /
  )
  t.match((await speak(forwarder.port, request('GET /', ...stray, ...upgrade))).said, /^HTTP\/1\.1 101 /)
  t.equal(seen.length, 2)
  for (const incoming of seen) {
    for (const name of [
      'trailer',
      'te',
      'proxy-authorization',
      'proxy-whatever',
      'proxy',
      'http2-settings',
      'x-hop',
      'keep-alive'
    ])
      t.same(valuesOf(incoming, name), [], name)
    t.same(valuesOf(incoming, 'host'), ['a'])
  }
})

test('a client cannot have a header taken out that is meant for the container', async t => {
  const { forwarder, seen } = await forwarding(t)
  const kept = {
    host: 'a',
    authorization: 'Bearer x',
    cookie: 'a=b',
    origin: 'http://a',
    'content-type': 'text/plain',
    'content-encoding': 'gzip',
    'cache-control': 'no-store'
  }
  for (const [option, ...more] of [['close'], ['Upgrade', 'Upgrade: websocket']] as const) {
    await speak(
      forwarder.port,
      request(
        'GET /',
        ...Object.entries(kept).map(([name, value]) => `${name}: ${value}`),
        ...more,
        `Connection: ${option}, X-Forwarded-For, ${Object.keys(kept).join(', ')}`
      )
    )
    t.match(seen.at(-1)?.headers, { ...kept, 'x-forwarded-for': '127.0.0.1' }, option)
  }
  t.equal(seen.length, 2)
})

test('the container is told one host: that of an absolute target, or the address itself where HTTP/1.0 names none', async t => {
  const { forwarder, seen } = await forwarding(t)
  await speak(forwarder.port, request('GET http://there.example:81/p', 'Host: a', 'Connection: close'))
  await speak(forwarder.port, 'GET / HTTP/1.0\r\n\r\n')
  t.same(
    seen.map(incoming => [
      incoming.url,
      ...valuesOf(incoming, 'host'),
      ...valuesOf(incoming, 'x-forwarded-host')
    ]),
    [
      ['/p', 'there.example:81', 'there.example:81'],
      ['/', `127.0.0.1:${forwarder.port}`, `127.0.0.1:${forwarder.port}`]
    ]
  )
})

test('an upgrade in HTTP/1.0 is ignored, and so is one to HTTP/2 however often it is offered', async t => {
  const { forwarder, seen } = await forwarding(t)
  t.match(
    (await speak(forwarder.port, 'GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')).said,
    /^HTTP\/1\.1 200 /
  )
  t.match(
    (
      await speak(
        forwarder.port,
        request('GET /', 'Host: a', 'Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: H2C')
      )
    ).said,
    /^HTTP\/1\.1 200 /
  )
  t.same(
    seen.flatMap(incoming => valuesOf(incoming, 'upgrade')),
    []
  )
  await speak(forwarder.port, request('GET /', 'Host: a', 'Connection: Upgrade', 'Upgrade: h2c, websocket'))
  t.same(
    seen.flatMap(incoming => valuesOf(incoming, 'upgrade')),
    ['websocket']
  )
})

test('more headers than anybody sends are refused, whatever stands behind them', async t => {
  const { forwarder, seen } = await forwarding(t)
  const headers = (count: number): string[] => Array.from({ length: count }, (_, at) => `X-${at}: a`)
  for (const count of [201, 230, 1_100]) {
    for (const last of [[], upgrade, ['Host: b'], ['Transfer-Encoding: chunked']]) {
      const { said, isClosed } = await speak(
        forwarder.port,
        `${request('POST /', 'Host: a', ...headers(count), ...last)}0\r\n\r\n${request('GET /', 'Host: a')}`
      )
      t.match(said, /^HTTP\/1\.1 431 /, `${count} and ${last.join()}`)
      t.equal(said.match(/HTTP\/1\.1/g)?.length, 1)
      t.ok(isClosed)
    }
  }
  t.equal(seen.length, 0)
  const { said } = await speak(
    forwarder.port,
    request('GET /', 'Host: a', ...headers(190), 'Connection: close')
  )
  t.match(said, /^HTTP\/1\.1 200 /)
  t.match(seen[0]?.headers, { 'x-189': 'a' })
})

test('a header that CGI cannot tell from one of ours does not pass', async t => {
  const { forwarder, seen } = await forwarding(t)
  const spelled = [
    'X_Forwarded_For',
    'x-forwarded_proto',
    'X_FORWARDED-HOST',
    'X_Real_IP',
    'Proxy_Authorization'
  ]
  const headers = spelled.map(name => `${name}: evil`)
  await speak(forwarder.port, request('GET /', 'Host: a', 'My_Own: 1', ...headers, 'Connection: close'))
  await speak(forwarder.port, request('GET /', 'Host: a', 'My_Own: 1', ...headers, ...upgrade))
  t.equal(seen.length, 2)
  for (const { rawHeaders, headers: own } of seen) {
    t.notOk(rawHeaders.includes('evil'))
    t.match(own, { my_own: '1', 'x-forwarded-for': '127.0.0.1' })
  }
})

test('an upgrade behind a request that is still being answered ends the connection', async t => {
  const { forwarder } = await forwarding(t)
  const { said, isClosed } = await speak(
    forwarder.port,
    request('GET /slow', 'Host: a') + request('GET /', 'Host: a', ...upgrade)
  )
  t.same({ said, isClosed }, { said: '', isClosed: true })
})

test('a container that never answers an upgrade, and a body that never ends, are waited for no longer than is said', async t => {
  const { forwarder } = await forwarding(t, { answerTimeoutMs: 200, lingerMs: 200 })
  t.match(await speak(forwarder.port, request('GET /slow', 'Host: a', ...upgrade)), {
    said: /^HTTP\/1\.1 504 /,
    isClosed: true
  })
  t.match(await speak(forwarder.port, `${request('POST /slow', 'Host: a', 'Content-Length: 5')}he`), {
    said: /^HTTP\/1\.1 408 /,
    isClosed: true
  })
  t.match(await speak(forwarder.port, `${request('POST /', 'Host: a', 'Content-Length: 5')}he`), {
    said: /^HTTP\/1\.1 200 /,
    isClosed: true
  })
  t.match(await speak(forwarder.port, request('GET /slow', 'Host: a')), { said: /^HTTP\/1\.1 504 / })
})

test('a request whose body is gone is not given to the container again when a kept connection is closed under it', async t => {
  const bodies: string[] = []
  const server = createServer(socket => {
    let asked = 0
    socket.on('error', () => {})
    socket.on('data', chunk => {
      asked += 1
      if (asked === 1) return socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      bodies.push(chunk.toString())
      socket.destroy()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const forwarder = await openForwarder(here, {
    deploymentId: 'd',
    containerId: 'c',
    host: '127.0.0.1',
    port
  })
  t.teardown(async () => {
    await forwarder.close()
    server.close()
  })
  t.equal((await ask(forwarder.port)).status, 200)
  t.equal((await ask(forwarder.port, { method: 'PUT', body: 'once' })).status, 502)
  t.equal(bodies.length, 1)
  // Without a body it is: the second connection answers.
  t.equal((await ask(forwarder.port)).status, 200)
  t.equal((await ask(forwarder.port, { method: 'PUT', headers: { 'Content-Length': '0' } })).status, 200)
  t.equal(bodies.length, 2)
})

test('whatever a container answers, no more than its connection ends', async t => {
  const answers: string[] = []
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.from(answers[0] ?? '', 'latin1')))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const forwarder = await openForwarder(here, {
    deploymentId: 'd',
    containerId: 'c',
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port
  })
  t.teardown(async () => {
    await forwarder.close()
    server.close()
  })
  for (const [answer, expected] of [
    ['HTTP/1.1 200 OK\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nok', /^HTTP\/1\.1 200 [\s\S]*ok$/],
    ['HTTP/1.1 204 No\r\nTrailer: X\r\n\r\n', /^HTTP\/1\.1 204 /],
    [
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: a\r\nSet-Cookie: token=evil\r\n\r\n',
      /^HTTP\/1\.1 200 [\s\S]*\r\n0\r\nX: a\r\n\r\n$/
    ],
    ['HTTP/1.1 101 Sw\u00e9\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n', /^HTTP\/1\.1 502 /],
    ['HTTP/1.1 099 No\r\n\r\n', /^HTTP\/1\.1 502 /],
    ['HTTP/1.1 200 \u0001\r\nContent-Length: 0\r\n\r\n', /^HTTP\/1\.1 (200|502) /],
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', /^HTTP\/1\.1 502 /],
    [
      'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /^HTTP\/1\.1 502 /
    ]
  ] as const) {
    answers[0] = answer
    t.match(
      (await speak(forwarder.port, request('GET /', 'Host: a', 'Connection: close'))).said,
      expected,
      JSON.stringify(answer)
    )
    t.match(
      (await speak(forwarder.port, request('GET /', 'Host: a', ...upgrade))).said,
      /^HTTP\/1\.1 (101|200|204|502) /,
      JSON.stringify(answer)
    )
    t.match(
      (await speak(forwarder.port, 'GET / HTTP/1.0\r\n\r\n')).said,
      /^HTTP\/1\.1 (200|204|502) /,
      JSON.stringify(answer)
    )
  }
})

test('a visitor has one request under way on a connection, however many come ahead', async t => {
  let now = 0
  let most = 0
  let asked = 0
  const origin = await startOrigin((_, response) => {
    asked += 1
    now += 1
    most = Math.max(most, now)
    setImmediate(() => {
      now -= 1
      response.end(String(asked))
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const { said } = await speak(
    forwarder.port,
    request('GET /', 'Host: a').repeat(49) + request('GET /', 'Host: a', 'Connection: close')
  )
  t.equal(said.match(/HTTP\/1\.1 200 /g)?.length, 50)
  t.equal(most, 1)

  asked = 0
  const flood = await speak(forwarder.port, request('GET /', 'Host: a').repeat(5_000))
  t.ok(flood.isClosed)
  t.ok(asked <= 1, `${asked} of 5000 reached the container`)
})

test('a request that waits behind another one does not outlive its connection', async t => {
  let open = 0
  const origin = await startOrigin(() => {})
  origin.server.on('connection', socket => {
    open += 1
    socket.once('close', () => {
      open -= 1
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  for (const last of [[], upgrade]) {
    const client = connect(forwarder.port, '127.0.0.1').on('error', () => {})
    client.write(request('GET /first', 'Host: a') + request('GET /second', 'Host: a'))
    await until(() => open > 0, 'the first one is at the container')
    t.equal(open, 1, 'the second one waits')
    client.write(
      last.length === 0
        ? request('POST /third', 'Host: a', 'Content-Length: 5')
        : request('GET /third', 'Host: a', ...last)
    )
    if (last.length === 0) client.destroy()
    await until(() => open === 0, 'it has left the container')
    t.equal(open, 0)
    client.destroy()
  }
})
