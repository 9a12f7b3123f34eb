import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { allow } from 'busbar/sdk'
import { createTestKernel, type TestKernel, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { bodyMemory, judgeBody } from '../../core/http/body-watch.js'
import { heldBuffers } from '../../lab/garbage.js'
import { pluginOf, probe, probeManifest } from '../kernel/probe.js'

interface Client {
  readonly socket: Socket
  said: string
  isClosed: boolean
}

/** A connection of the test's own, with what the platform has said on it so far. */
async function open(t: Test, k: TestKernel, head = ''): Promise<Client> {
  const socket = connect(k.port, '127.0.0.1')
  const client: Client = { socket, said: '', isClosed: false }
  socket.on('error', () => {})
  socket.on('data', chunk => {
    client.said += String(chunk)
  })
  socket.on('close', () => {
    client.isClosed = true
  })
  t.teardown(() => {
    socket.destroy()
  })
  await once(socket, 'connect')
  if (head !== '') socket.write(head)
  return client
}

const get = 'GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n'
const several = async (count: number, make: () => Promise<Client>): Promise<Client[]> =>
  await Promise.all(Array.from({ length: count }, make))

test('an address has so many connections and no more, and gets one again when it closes one', async t => {
  const k = await createTestKernel({ environment: { MAX_CONNECTIONS_PER_ADDRESS: '20' } })
  t.teardown(() => k.close())
  const clients = await several(25, async () => await open(t, k, get))
  t.ok(await until(() => clients.every(({ said }) => said !== ''), 'all have an answer'))
  const refused = clients.filter(({ said }) => said.startsWith('HTTP/1.1 429 '))
  t.equal(refused.length, 5)
  t.match(refused[0]?.said, /retry-after: \d+\r\n.*E_TOO_MANY_CONNECTIONS/s)
  t.ok(await until(() => refused.every(({ isClosed }) => isClosed), 'and the connection ends'))
  const kept = clients.filter(client => !refused.includes(client))
  for (const { socket } of kept) socket.destroy()
  t.ok(await until(() => kept.every(({ isClosed }) => isClosed), 'all kept connections end'))
  const again = await open(t, k, get)
  t.ok(await until(() => again.said.startsWith('HTTP/1.1 200 '), 'there is room for another one again'))
})

test('an open WebSocket counts among the connections of its address', async t => {
  const k = await createTestKernel({ environment: { MAX_CONNECTIONS_PER_ADDRESS: '3' } })
  t.teardown(() => k.close())
  const session = await k.as.session()
  const sockets = [await k.socket(session), await k.socket(session), await k.socket(session)]
  const fourth = await open(t, k, get)
  t.ok(await until(() => fourth.isClosed, 'the fourth ends'))
  t.match(fourth.said, /^HTTP\/1\.1 429 /)
  for (const socket of sockets) await socket.close()
})

test('a proxy of TRUST_PROXY has no cap of its own, and the cap for all holds for it too', async t => {
  const k = await createTestKernel({
    environment: { MAX_CONNECTIONS_PER_ADDRESS: '5', MAX_CONNECTIONS: '30', TRUST_PROXY: '127.0.0.1' }
  })
  t.teardown(() => k.close())
  const clients = await several(40, async () => await open(t, k, 'GET /api/version HTTP/1.1\r\n'))
  t.ok(await until(() => clients.filter(({ said }) => said !== '').length === 10, 'ten have an answer'))
  t.match(
    clients.filter(({ said }) => said !== '').map(({ said }) => said),
    Array<RegExp>(10).fill(/^HTTP\/1\.1 503 .*E_TOO_MANY_CONNECTIONS/s)
  )
})

test('at the cap for all, connections that wait for nothing make room', async t => {
  const k = await createTestKernel({ environment: { MAX_CONNECTIONS: '10' } })
  t.teardown(() => k.close())
  const idle = await several(10, async () => await open(t, k, get))
  t.ok(await until(() => idle.every(({ said }) => said !== ''), 'all have an answer'))
  await open(t, k, get)
  t.ok(await until(() => idle.every(({ isClosed }) => isClosed), 'all that are idle end'))
  const next = await open(t, k, get)
  t.ok(await until(() => next.said.startsWith('HTTP/1.1 200 '), 'the next one is answered'))
})

test('a client that reads nothing of its answer keeps its connection for a while only', async t => {
  const answers = pluginOf('answers', [
    {
      method: 'GET',
      url: '/api/large',
      summary: 'More than the system keeps for a reader',
      access: allow.public('a test'),
      handler: () => 'a'.repeat(32 * 2 ** 20)
    } as never,
    {
      method: 'GET',
      url: '/api/slow',
      summary: 'Waits until its client is gone',
      access: allow.public('a test'),
      handler: async ({ signal }: { signal: AbortSignal }) => {
        await new Promise(resolve => {
          signal.addEventListener('abort', resolve)
        })
      }
    } as never
  ])
  const k = await createTestKernel({ inline: [answers] })
  t.teardown(() => k.close())
  k.kernel.edge.server.timeout = 2_000
  const waiting = await open(t, k, 'GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n')
  const reader = await open(t, k, 'GET /api/large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
  const stalled = await open(t, k)
  stalled.socket.pause()
  stalled.socket.write('GET /api/large HTTP/1.1\r\nHost: a\r\n\r\n')
  const underWay = (): number => k.inFlight('answers')
  t.ok(
    await until(
      () => reader.isClosed && underWay() === 1,
      'who reads has ended, and one request is under way'
    ),
    `${underWay()} are under way`
  )
  t.ok(reader.said.length > 32 * 2 ** 20, 'who reads gets all of it')
  t.notOk(waiting.isClosed, 'who waits for an answer may wait')
})

test('a body keeps a pace: whole ones a fast one, streams a slow one', t => {
  const whole = { kind: 'json', limit: 1_048_576 } as const
  const stream = { kind: 'stream', limit: 1_048_576 } as const
  t.equal(judgeBody(whole, 9_999, 0), 'fine')
  t.equal(judgeBody(whole, 11_000, 1_000), 'late')
  t.equal(judgeBody(whole, 70_000, 1_000_000), 'fine', 'a mebibyte may take more than a minute')
  t.equal(judgeBody(stream, 29_000, 0), 'fine')
  t.equal(judgeBody(stream, 40_000, 5_000), 'late')
  t.equal(judgeBody(stream, 36_000_000, 40_000_000), 'fine', 'an upload may take hours')
  t.equal(judgeBody({ kind: 'none', limit: 1_000 }, 1_000, 60_000), 'fine')
  t.equal(judgeBody({ kind: 'none', limit: 1_000 }, 1_000, 70_000), 'long', 'what nobody reads has an end')
  t.end()
})

test('bodies that do not come are answered 408 and their connections end; an upload at its own pace goes on', async t => {
  const upload = pluginOf('upload', [
    {
      method: 'POST',
      url: '/api/upload',
      summary: 'Upload',
      access: allow.public('a test'),
      body: 'stream',
      handler: async ({ body }: { body: Readable }) => {
        let bytes = 0
        for await (const chunk of body) bytes += (chunk as Buffer).length
        return { bytes }
      }
    } as never
  ])
  const k = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }, upload] })
  t.teardown(() => k.close())
  await k.user('admin')
  const post = (path: string, length: string) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${length}\r\n\r\n`
  const stalled = [
    ...(await several(
      20,
      async () => await open(t, k, `${post('/api/auth/login', 'Content-Length: 16000')}{`)
    )),
    ...(await several(
      20,
      async () => await open(t, k, `${post('/api/probe/raw', 'Transfer-Encoding: chunked')}1\r\n{\r\n`)
    )),
    ...(await several(
      20,
      async () => await open(t, k, `${post('/api/probe/nobody', 'Content-Length: 16000')}{`)
    )),
    ...(await several(20, async () => await open(t, k, `${post('/api/nowhere', 'Content-Length: 16000')}{`))),
    ...(await several(
      20,
      async () => await open(t, k, 'OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000\r\n\r\n{')
    )),
    ...(await several(
      20,
      async () => await open(t, k, `${post('/api/nowhere', 'Expect: miracles\r\nContent-Length: 16000')}{`)
    ))
  ]
  const steady = await open(t, k, post('/api/upload', 'Content-Length: 30000'))
  const dribble = setInterval(() => {
    for (const [at, { socket }] of stalled.entries())
      if (socket.writable) socket.write(at >= 20 && at < 40 ? '1\r\n \r\n' : ' ')
  }, 1_000)
  t.teardown(() => {
    clearInterval(dribble)
  })
  for (let n = 0; n < 15; n++) {
    steady.socket.write(Buffer.alloc(2_000))
    await sleep(1_000)
  }
  t.ok(
    await until(() => steady.said.includes('{"bytes":30000}'), 'who sends steadily is answered'),
    steady.said
  )
  t.ok(
    await until(() => stalled.every(({ isClosed }) => isClosed), 'all that stall have ended', 5_000),
    `${stalled.filter(({ isClosed }) => !isClosed).length} are still open`
  )
  const answers = stalled.map(({ said }) => /^HTTP\/1\.1 (\d+)/.exec(said)?.[1])
  t.same(
    [...answers.slice(0, 20)].sort(),
    [...Array<string>(5).fill('408'), ...Array<string>(15).fill('429')],
    'a sign-in has five tries a minute'
  )
  t.same(answers.slice(20), [
    ...Array<string>(20).fill('408'),
    ...Array<string>(20).fill('204'),
    ...Array<string>(20).fill('404'),
    ...Array<string>(20).fill('204'),
    ...Array<string>(20).fill('404')
  ])
})

test(
  'bodies on their way take a bounded amount of memory, and give it back',
  { timeout: 60_000 },
  async t => {
    const k = await createTestKernel({ inline: [{ manifest: probeManifest, definition: probe }] })
    t.teardown(() => k.close())
    const session = await k.as.session()
    const credential = Object.entries(session.credential)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')
    const buffers = (): number => process.memoryUsage().arrayBuffers
    const before = buffers()
    const head = `POST /api/projects HTTP/1.1\r\nHost: localhost\r\n${credential}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n`
    const piece = Buffer.alloc(900_000, 0x20)
    const clients = await several(300, async () => {
      const client = await open(t, k, head)
      client.socket.write(piece)
      return client
    })
    t.ok(
      await until(
        () =>
          clients.filter(({ said }) => said.startsWith('HTTP/1.1 503 ')).length >=
          300 - bodyMemory.perAddress / 1_000_000 - 1,
        'all but those that have room are refused'
      ),
      `${clients.filter(({ said }) => said !== '').length} refused`
    )
    const admitted = clients.filter(({ said }) => said === '')
    t.ok(admitted.length <= 34, `${admitted.length} are being read`)
    t.match(clients.find(({ said }) => said !== '')?.said, /retry-after: \d+.*E_BODIES_BUSY/s)
    t.ok(
      await until(() => buffers() - before < 64 * 2 ** 20, 'less than 64 MiB of buffers are held'),
      `${Math.round((buffers() - before) / 2 ** 20)} MiB of buffers`
    )
    for (const { socket } of clients) socket.destroy()
    t.equal((await session.post('/api/projects', { name: 'Shop', slug: 'shop' })).status, 201)
    t.ok(
      await until(() => heldBuffers() - before < 8 * 2 ** 20, 'less than 8 MiB of buffers are held'),
      `${Math.round((buffers() - before) / 2 ** 20)} MiB are still held`
    )
  }
)

test('bodies that were refused and whose clients have left hold no room', { timeout: 60_000 }, async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const session = await k.as.session()
  const credential = Object.entries(session.credential)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')
  const head = `POST /api/projects HTTP/1.1\r\nHost: localhost\r\n${credential}Content-Type: application/json\r\nContent-Length: 1500000\r\n\r\n`
  const count = Math.ceil(bodyMemory.perAddress / 2 ** 20) + 8
  for (let sent = 0; sent < count; sent++) {
    const client = await open(t, k, head)
    t.ok(await until(() => client.isClosed, 'the connection ends'))
    t.match(client.said, /^HTTP\/1\.1 413 /)
  }
  t.equal((await session.post('/api/projects', { name: 'Room', slug: 'room' })).status, 201)
})
