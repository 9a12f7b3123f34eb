import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow, definePlugin, download } from 'busbar/sdk'
import { createTestKernel, TestClient, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { currentPlugin, kernelOwner } from '../../core/frames/frames.js'

const slow = definePlugin({
  id: 'slow',
  routes(route) {
    route({
      method: 'GET',
      url: '/api/slow',
      summary: 'Waits until its client is gone',
      access: allow.public('a test'),
      handler: async ({ signal }) => {
        if (!signal.aborted)
          await new Promise(resolve => {
            signal.addEventListener('abort', resolve)
          })
      }
    })
    route({
      method: 'GET',
      url: '/api/file',
      summary: 'A download',
      access: allow.public('a test'),
      handler: () => download(Readable.from(['a', 'b']), { type: 'text/plain', filename: 'a.txt' })
    })
  }
})

const slowManifest = { manifest: { id: 'slow' }, definition: slow }
const one = 'GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n'

test('a connection has one request under way, however many it sends ahead, and the others end with it', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const underWay = (): number => k.inFlight('slow')
  const anonymous = new TestClient(k.url)
  for (const last of [
    '',
    'GET /api/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  ]) {
    const client = connect(k.port, '127.0.0.1').on('error', () => {})
    client.write(one.repeat(15))
    await until(() => underWay() === 1, 'one request is under way')
    // Whatever came before it has been read by now.
    await anonymous.get('/api/version')
    t.equal(underWay(), 1)
    if (last === '') client.destroy()
    else client.write(last)
    await until(() => underWay() === 0, 'no request is under way')
    await anonymous.get('/api/version')
    t.equal(underWay(), 0, 'its signal has aborted, and none of the others has begun')
    client.destroy()
  }
})

test('a connection that sends more ahead than anybody has use for ends', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const large = `GET /api/version HTTP/1.1\r\nHost: a\r\nX-A: ${'a'.repeat(30_000)}\r\n\r\n`
  let made = 0
  k.kernel.edge.server.on('request', () => {
    made++
  })
  for (const ahead of [one.repeat(1_500), one + large.repeat(4)]) {
    const client = connect(k.port, '127.0.0.1').on('error', () => {})
    client.write(ahead)
    const ended = await Promise.race([
      once(client.resume(), 'close').then(() => true),
      sleep(10_000, false, { ref: false })
    ])
    t.ok(ended)
    client.destroy()
  }
  t.ok(made < 150, `node made ${made} requests of it`)
})

test('what follows a request that asks to close the connection is not begun', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const client = connect(k.port, '127.0.0.1').on('error', () => {})
  const closing = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  client.write(closing + one)
  let said = ''
  for await (const chunk of client) said += String(chunk)
  t.equal(said.match(/HTTP\/1\.1/g)?.length, 1)
  t.equal(k.inFlight('slow'), 0)
})

test('what follows a request without a Host is not begun, and keeps no plugin from stopping', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const client = connect(k.port, '127.0.0.1').on('error', () => {})
  client.write(`GET / HTTP/1.1\r\n\r\n${one}`)
  let said = ''
  for await (const chunk of client) said += String(chunk)
  t.match(said, /^HTTP\/1\.1 400 /)
  t.match(said, /E_REQUEST_INVALID/, 'it is the answer of the platform')
  t.equal(said.match(/HTTP\/1\.1/g)?.length, 1)
  t.equal(k.inFlight('slow'), 0)
})

test('a request whose client leaves while it is admitted is not under way', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const { guard } = k.kernel.edge.options
  const admit = guard.admit.bind(guard)
  let admitted = 0
  let release = (): void => {}
  guard.admit = async context => {
    await new Promise<void>(resolve => {
      release = resolve
      admitted++
    })
    return await admit(context)
  }
  const gone = new Promise<void>(resolve => {
    k.kernel.edge.server.once('connection', socket => socket.once('close', resolve))
  })
  const client = connect(k.port, '127.0.0.1').on('error', () => {})
  client.write(one)
  await until(() => admitted === 1, 'a request is at the guard')
  client.destroy()
  await gone
  release()
  await new Promise(setImmediate)
  t.equal(admitted, 1)
  t.equal(k.inFlight('slow'), 0)
})

test("a request that has waited does not begin in the frame of another's plugin", async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const { edge } = k.kernel
  const owners: Array<string | undefined> = []
  const handle = edge.handle.bind(edge)
  edge.handle = (request, response) => {
    owners.push(currentPlugin())
    handle(request, response)
  }
  const client = connect(k.port, '127.0.0.1')
  client.write('GET /api/file HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
  client.write('GET /api/file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  let said = ''
  for await (const chunk of client) said += String(chunk)
  t.equal(said.match(/HTTP\/1\.1 200/g)?.length, 3)
  t.same(owners, [kernelOwner, kernelOwner, kernelOwner])
})

test('between two requests that a connection sent ahead, others have their turn', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const { edge } = k.kernel
  const handle = edge.handle.bind(edge)
  let ofTurn = 0
  let most = 0
  let handled = 0
  edge.handle = (request, response) => {
    if (ofTurn === 0)
      setImmediate(() => {
        ofTurn = 0
      })
    handled++
    ofTurn++
    most = Math.max(most, ofTurn)
    // As long as an ordinary request takes on a slow machine.
    for (const end = performance.now() + 4; performance.now() < end; );
    handle(request, response)
  }
  const clients = Array.from({ length: 12 }, () => connect(k.port, '127.0.0.1').on('error', () => {}))
  await Promise.all(clients.map(async client => await once(client, 'connect')))
  const ends = clients.map(async client => {
    let said = ''
    for await (const chunk of client) said += String(chunk)
    return said.match(/HTTP\/1\.1 404/g)?.length
  })
  const ahead = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n'
  for (const client of clients)
    client.write(ahead.repeat(20) + ahead.replace('Host', 'Connection: close\r\nHost'))
  t.same(await Promise.all(ends), Array(12).fill(21))
  t.equal(handled, 12 * 21)
  // The first request of each connection begins when it arrives; of those that waited, what 10 ms have room for.
  t.ok(most <= 12 + 6, `${most} in one turn`)
})

test('the first requests of many connections leave others their turn too', async t => {
  const k = await createTestKernel({ inline: [slowManifest] })
  t.teardown(async () => {
    await k.close()
  })
  const { edge } = k.kernel
  const handle = edge.handle.bind(edge)
  let ofTurn = 0
  let most = 0
  edge.handle = (request, response) => {
    if (ofTurn === 0)
      setImmediate(() => {
        ofTurn = 0
      })
    ofTurn++
    most = Math.max(most, ofTurn)
    for (const end = performance.now() + 4; performance.now() < end; );
    handle(request, response)
  }
  let accepted = 0
  edge.server.on('connection', () => {
    accepted++
  })
  const clients = Array.from({ length: 40 }, () => connect(k.port, '127.0.0.1').on('error', () => {}))
  await until(() => accepted === 40, 'all are accepted, so that all can be read in one turn')
  const ends = clients.map(async client => {
    let said = ''
    for await (const chunk of client) said += String(chunk)
    return said.match(/HTTP\/1\.1 404/g)?.length
  })
  for (const client of clients) client.write('GET /nothing HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n')
  t.same(await Promise.all(ends), Array(40).fill(1))
  // What 10 ms have room for, when they arrive and when they have waited.
  t.ok(most <= 6 + 3, `${most} in one turn`)
})
