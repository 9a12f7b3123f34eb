import { createHash } from 'node:crypto'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { openForwarder } from '../forwarder.js'
import { ask, speak, startOrigin } from './origin.js'

const here = { host: '127.0.0.1', port: 0 }

test('a request reaches the container with its method, path, headers and body, and the answer comes back', async t => {
  const origin = await startOrigin((incoming, response) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('end', () => {
      response.writeHead(201, { 'X-Two': ['a', 'b'], 'Content-Type': 'application/json' })
      response.end(
        JSON.stringify({
          method: incoming.method,
          url: incoming.url,
          headers: incoming.headers,
          body: Buffer.concat(chunks).toString()
        })
      )
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))

  const answer = await ask(forwarder.port, {
    method: 'POST',
    path: '/a/b?c=1',
    body: 'hello',
    headers: {
      'X-Mine': '1',
      'X-Forwarded-For': '6.6.6.6',
      Forwarded: 'for=6.6.6.6',
      Connection: 'X-Hop',
      'X-Hop': 'no',
      Host: 'my.host:1'
    }
  })
  t.equal(answer.status, 201)
  t.equal(answer.headers['x-two'], 'a, b')
  const seen = JSON.parse(answer.body)
  t.match(seen, { method: 'POST', url: '/a/b?c=1', body: 'hello' })
  t.match(seen.headers, {
    'x-mine': '1',
    host: 'my.host:1',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': 'my.host:1',
    'content-length': '5'
  })
  t.notOk(seen.headers.forwarded, 'what a client says of its origin is dropped')
  t.notOk(seen.headers['x-hop'], 'a header named by Connection is dropped')
})

test('chunked bodies and trailers pass, and never with a length beside them', async t => {
  const origin = await startOrigin((incoming, response) => {
    const seen = { te: incoming.headers['transfer-encoding'], length: incoming.headers['content-length'] }
    response.writeHead(200, { Trailer: 'X-Sum' })
    incoming.on('data', chunk => response.write(chunk))
    incoming.on('end', () => {
      response.addTrailers({ 'X-Sum': '42' })
      response.end(JSON.stringify(seen))
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const trailers = await new Promise<unknown>((resolve, reject) => {
    const outgoing = request({ host: '127.0.0.1', port: forwarder.port, method: 'PUT' }, answer => {
      let body = ''
      answer.on('data', chunk => {
        body += chunk
      })
      answer.on('end', () => resolve([body, answer.trailers['x-sum']]))
    })
    outgoing.on('error', reject)
    outgoing.write('one,')
    setTimeout(() => outgoing.end('two,'), 20)
  })
  t.same(trailers, ['one,two,{"te":"chunked"}', '42'])
})

test('a request with both a length and a transfer coding is refused and reaches nobody', async t => {
  let reached = 0
  const origin = await startOrigin((_, response) => {
    reached += 1
    response.end()
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  for (const smuggled of [
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n',
    'GET / HTTP/1.1\r\nHost: a\r\nX: a\n\tb\rc\r\n\r\n'
  ]) {
    const answer = await raw(forwarder.port, smuggled)
    t.match(answer, /^HTTP\/1\.1 (400|501) /, JSON.stringify(smuggled))
  }
  t.equal(reached, 0)
})

test('an offer to speak HTTP/2 does not reach the container, the request and its body do', async t => {
  const origin = await startOrigin((request, response) => {
    request.on('data', (body: Buffer) => {
      response.end(`${String(request.headers.upgrade)} ${body.toString()}`)
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const answer = await raw(
    forwarder.port,
    'POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\ncontent-length: 5\r\n\r\nhello'
  )
  t.match(answer, /^HTTP\/1\.1 200 [\s\S]*connection: close[\s\S]*undefined hello/i)
})

test('an absolute request target loses its scheme and host', async t => {
  const origin = await startOrigin((incoming, response) => response.end(incoming.url))
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  t.match(
    await raw(forwarder.port, 'GET http://other.host/p?q HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    /\r\n\/p\?q/
  )
  t.match(
    await raw(forwarder.port, 'GET ftp://other.host/p HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    /^HTTP\/1\.1 400 /
  )
})

test("the platform's cookies neither reach the application nor are overwritten by it", async t => {
  const origin = await startOrigin((incoming, response) => {
    response.writeHead(200, {
      'Set-Cookie': [
        'token=evil; Path=/',
        'mine=1',
        'csrf_token=evil',
        'refresh_token=x; HttpOnly',
        'token2=fine'
      ]
    })
    response.end(incoming.headers.cookie ?? 'none')
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const answer = await ask(forwarder.port, {
    headers: {
      Cookie:
        'a=1; token=busbar_ses_abc; refresh_token="busbar_ref_abc"; csrf_token=xyz; token=mine; x=%62usbar_ses_abc; b=2'
    }
  })
  t.equal(answer.body, 'a=1; token=mine; b=2')
  t.same(answer.headers['set-cookie'], ['mine=1', 'token2=fine'])
  t.equal((await ask(forwarder.port, { headers: { Cookie: 'token=busbar_ses_abc' } })).body, 'none')
})

test('what is wrong is said in plain text: not running, not listening, no answer, not HTTP', async t => {
  const silent = await startOrigin(() => {})
  const forwarder = await openForwarder(here, null, { connectTimeoutMs: 300, answerTimeoutMs: 200 })
  t.teardown(() => Promise.all([forwarder.close(), silent.close()]))

  const stopped = await ask(forwarder.port)
  t.match(stopped, { status: 503, body: /not running/, headers: { 'content-type': /^text\/plain/ } })

  forwarder.retarget({ ...silent.target, port: 1 })
  t.match(await ask(forwarder.port), { status: 502, body: /not listening/ })

  forwarder.retarget(silent.target)
  t.match(await ask(forwarder.port), { status: 504, body: /did not begin to answer/ })

  const gibberish = await startOrigin(() => {})
  gibberish.server.prependListener('connection', socket => socket.write('hello?\r\n\r\n'))
  t.teardown(() => gibberish.close())
  forwarder.retarget(gibberish.target)
  t.match(await ask(forwarder.port), { status: 502, body: /did not answer with HTTP/ })
})

test('a client that goes away aborts the request at the container', async t => {
  let aborted = false
  const origin = await startOrigin((_incoming, response) => {
    response.on('close', () => {
      aborted = !response.writableFinished
    })
    response.write('begun')
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const socket = connect(forwarder.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
  await new Promise(resolve => socket.once('data', resolve))
  socket.destroy()
  await until(() => aborted, 'the container is told that its client has gone')
  t.ok(aborted)
})

test('a container that dies in the middle of an answer cuts the answer instead of ending it', async t => {
  const origin = await startOrigin(({ url }, response) => {
    response.writeHead(200, url === '/length' ? { 'Content-Length': 100 } : {})
    response.write('half')
    setTimeout(() => response.destroy(), 30)
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  for (const path of ['/length', '/chunks'])
    await t.rejects(ask(forwarder.port, { path }), { code: 'ECONNRESET' }, path)
})

test('a slow reader holds the container back instead of filling the memory', async t => {
  let written = 0
  const origin = await startOrigin((_, response) => {
    const chunk = Buffer.alloc(64 * 1024)
    const push = (): void => {
      if (response.destroyed) return
      written += chunk.length
      if (response.write(chunk)) setImmediate(push)
      else response.once('drain', push)
    }
    push()
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const socket = connect(forwarder.port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'))
  socket.pause()
  const limit = 32 * 1024 * 1024
  // However slow the machine: it stops before the limit, or passes it.
  await until(
    async () => {
      const before = written
      await sleep(500)
      return written === before || written >= limit
    },
    'it stops writing',
    60_000
  )
  t.ok(written > 0 && written < limit, `stopped after ${written} bytes`)
  socket.destroy()
})

test('a client that takes nothing of an answer is waited for no longer than is said', async t => {
  const origin = await startOrigin((incoming, response) => {
    if (incoming.url === '/large') response.end(Buffer.alloc(32 * 1024 * 1024))
    else if (incoming.url === '/quiet') setTimeout(() => response.end('after a while'), 1_500)
    else response.end('ok')
  })
  const forwarder = await openForwarder(here, origin.target, { readerMs: 300 })
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const stalled = connect(forwarder.port, '127.0.0.1', () =>
    stalled.write('GET /large HTTP/1.1\r\nHost: a\r\n\r\n')
  ).on('error', () => {})
  t.teardown(() => stalled.destroy())
  stalled.pause()
  const reader = ask(forwarder.port, { path: '/large', agent: false })
  t.match(await ask(forwarder.port, { path: '/quiet', agent: false }), { body: 'after a while' })
  t.equal((await reader).body.length, 32 * 1024 * 1024)
  let received = 0
  for await (const chunk of stalled) received += (chunk as Buffer).length
  t.ok(received < 32 * 1024 * 1024, `it ended after ${received} bytes`)
})

test("an expectation of any kind is the container's to answer", async t => {
  const origin = await startOrigin((_, response) => {
    response.end('reached')
  })
  origin.server.on('checkExpectation', (_, response) => {
    response.writeHead(417).end('not here')
  })
  const forwarder = await openForwarder(here, origin.target, { lingerMs: 200 })
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  t.match(
    await speak(forwarder.port, 'POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 9\r\n\r\n1'),
    {
      said: /^HTTP\/1\.1 417 [\s\S]*not here/,
      isClosed: true
    }
  )
})

test('a large upload arrives whole, and an early refusal is delivered', async t => {
  const origin = await startOrigin((incoming, response) => {
    if (incoming.url === '/refuse') {
      response.writeHead(413)
      response.end('too large')
      return
    }
    const hash = createHash('sha256')
    incoming.on('data', chunk => hash.update(chunk))
    incoming.on('end', () => response.end(hash.digest('hex')))
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const body = Buffer.alloc(20 * 1024 * 1024, 'x')
  t.equal(
    (await ask(forwarder.port, { method: 'POST', body })).body,
    createHash('sha256').update(body).digest('hex')
  )
  t.match(await ask(forwarder.port, { method: 'POST', path: '/refuse', body: Buffer.alloc(100_000) }), {
    status: 413,
    body: 'too large'
  })
})

test('an answer that comes before the end of the upload leaves no connection behind', async t => {
  let open = 0
  const origin = await startOrigin((_, response) => {
    response.writeHead(403)
    response.end('no')
  })
  origin.server.on('connection', socket => {
    open += 1
    socket.once('close', () => {
      open -= 1
    })
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  for (let index = 0; index < 3; index += 1) {
    const status = await new Promise((resolve, reject) => {
      const outgoing = request(
        { host: '127.0.0.1', port: forwarder.port, method: 'POST', headers: { 'Content-Length': 1_000_000 } },
        answer => {
          answer.resume().once('end', () => {
            resolve(answer.statusCode)
            outgoing.destroy()
          })
        }
      )
      outgoing.on('error', reject)
      outgoing.write('only the beginning')
    })
    t.equal(status, 403)
  }
  await until(() => open === 0, 'no request is open')
  t.equal(open, 0)
})

test("Expect: 100-continue is the container's to answer", async t => {
  const origin = await startOrigin((incoming, response) => incoming.pipe(response))
  origin.server.on('checkContinue', (incoming, response) => {
    if (incoming.url === '/no') {
      response.writeHead(417)
      return response.end('no')
    }
    response.writeContinue()
    incoming.pipe(response)
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const upload = (path: string): Promise<string> =>
    new Promise((resolve, reject) => {
      let wasContinued = false
      const outgoing = request(
        {
          host: '127.0.0.1',
          port: forwarder.port,
          method: 'POST',
          path,
          headers: { Expect: '100-continue', 'Content-Length': 2 }
        },
        answer => {
          answer
            .setEncoding('utf8')
            .once('data', body => resolve(`${answer.statusCode} ${wasContinued} ${body}`))
        }
      )
      outgoing.on('continue', () => {
        wasContinued = true
        outgoing.end('ok')
      })
      outgoing.on('error', reject)
      outgoing.flushHeaders()
    })
  t.equal(await upload('/'), '200 true ok')
  t.equal(await upload('/no'), '417 false no')
})

test('the head of an event stream arrives before its first event', async t => {
  const origin = await startOrigin((_, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    response.flushHeaders()
  })
  const forwarder = await openForwarder(here, origin.target)
  t.teardown(() => Promise.all([forwarder.close(), origin.close()]))
  const status = await new Promise(resolve => {
    const outgoing = request({ host: '127.0.0.1', port: forwarder.port }, answer => {
      resolve(answer.statusCode)
      outgoing.destroy()
    })
    outgoing.on('error', () => {})
    outgoing.end()
  })
  t.equal(status, 200)
})

test('HEAD, 204 and 304 keep their headers and have no body', async t => {
  const origin = await startOrigin((incoming, response) => {
    if (incoming.url === '/204') response.writeHead(204, { 'X-A': '1' })
    else if (incoming.url === '/304') response.writeHead(304, { ETag: '"1"' })
    else response.writeHead(200, { 'Content-Length': 12 })
    response.end(incoming.method === 'HEAD' || incoming.url !== '/' ? undefined : 'x'.repeat(12))
  })
  const forwarder = await openForwarder(here, origin.target)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => {
    agent.destroy()
    return Promise.all([forwarder.close(), origin.close()])
  })
  t.match(await ask(forwarder.port, { method: 'HEAD', agent }), {
    status: 200,
    body: '',
    headers: { 'content-length': '12' }
  })
  t.match(await ask(forwarder.port, { path: '/204', agent }), {
    status: 204,
    body: '',
    headers: { 'x-a': '1' }
  })
  t.match(await ask(forwarder.port, { path: '/304', agent }), {
    status: 304,
    body: '',
    headers: { etag: '"1"' }
  })
  t.match(await ask(forwarder.port, { agent }), { status: 200, body: 'x'.repeat(12) })
})

function raw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.setTimeout(2000, () => socket.destroy())
    socket.on('data', chunk => {
      answer += chunk.toString()
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(answer))
  })
}
