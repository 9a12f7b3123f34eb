import { once } from 'node:events'
import type { Socket as NetSocket } from 'node:net'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import type { Connection } from '../../core/bus/connection.js'
import { FanOut } from '../../core/bus/fan-out.js'
import { inSlices } from '../../core/bus/slices.js'
import { Topic } from '../../core/bus/topic.js'
import { channel, type HubKit, knownId, startHub } from './hub-kit.js'

async function start(t: Test) {
  const kit = await startHub({ maxConnectionsPerUser: 10_000 })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [channel('platform', { endsWith: 'done' }), channel('second')])
  return kit
}

/** A client below the WebSocket: it counts frames by their last byte and may stop reading. */
async function rawClient(kit: HubKit): Promise<Socket> {
  const address = kit.server.address()
  const socket = createConnection(
    typeof address === 'object' && address !== null ? address.port : 0,
    '127.0.0.1'
  )
  socket.write(
    'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nx-user: raw\r\n\r\n'
  )
  const [head] = await once(socket, 'data')
  if (!String(head).startsWith('HTTP/1.1 101')) throw new Error(String(head))
  const text = Buffer.from('{"action":"subscribe","channel":"platform"}')
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]))
  socket.on('error', () => {})
  return socket
}

test('events of one tick reach a socket in one write, in order, across channels', async t => {
  const kit = await start(t)
  const client = await kit.connect()
  await client.subscribe('platform', 'second')
  const raw = kit.sockets[0]?._socket as NetSocket
  const writes: number[] = []
  const handle = (raw as unknown as { _handle: Record<string, (...args: unknown[]) => unknown> })._handle
  for (const method of ['writeBuffer', 'writev']) {
    const original = handle[method]!.bind(handle)
    handle[method] = (...args) => {
      writes.push(1)
      return original(...args)
    }
  }
  for (let n = 0; n < 8; n++) kit.hub.publish('platform', 'log', n)
  await client.received(8)
  t.equal(writes.length, 1)
  for (let n = 0; n < 4; n++) {
    kit.hub.publish('platform', 'log', n)
    kit.hub.publish('second', 'log', n)
  }
  await client.received(16)
  t.equal(writes.length, 2)
  t.same(
    client.frames
      .slice(8)
      .filter(frame => frame.channel === 'second')
      .map(frame => frame.data),
    [0, 1, 2, 3]
  )
  t.same(
    client.frames
      .slice(8)
      .filter(frame => frame.channel === 'platform')
      .map(frame => frame.data),
    [0, 1, 2, 3]
  )
})

test('messages of every length are framed as clients expect', async t => {
  const kit = await start(t)
  const client = await kit.connect()
  await client.subscribe('platform')
  const lengths = [0, 80, 85, 90, 126, 1000, 65_400, 65_536, 70_000, 300_000]
  for (const length of lengths) kit.hub.publish('platform', 'log', 'ü'.repeat(length))
  await client.received(lengths.length)
  t.same(
    client.data.map(text => String(text).length),
    lengths
  )
})

test('what waits for a round is limited; more than that is dropped and counted, and each round makes room', async t => {
  const kit = await start(t)
  const client = await kit.connect()
  await client.subscribe('platform')
  const warnings = () => kit.logged.filter(({ level }) => level === 'warn')
  const text = 'x'.repeat(1_000_000)
  for (let round = 1; round <= 2; round++) {
    // In one tick, and 16 MiB are 16 of them.
    for (let n = 0; n < 20; n++) kit.hub.publish('platform', 'log', text)
    await client.received(round * 16)
    await until(() => warnings().length === round, 'a warning of what was dropped')
    await client.settled()
    t.equal(client.frames.length, round * 16)
    t.match(warnings().at(-1), { dropped: 4, msg: /published faster than they could be written/ })
  }
  kit.hub.publish('platform', 'log', 'x'.repeat(1024 * 1024))
  t.match(kit.logged.at(-1), { level: 'error', msg: /too long/ }, 'one that is too long is told nobody')
  kit.hub.publish('platform', 'log', 'last')
  await client.received(33)
  t.equal(client.data.at(-1), 'last')
  t.match(kit.hub.counts, { dropped: 8 })
})

test('a flood on one channel takes neither what others publish nor the end of its own', async t => {
  const kit = await start(t)
  const client = await kit.connect()
  await client.subscribe('platform', 'second')
  const text = 'x'.repeat(1_000_000)
  for (let n = 0; n < 20; n++) kit.hub.publish('platform', 'log', text)
  kit.hub.publish('second', 'log', 'short')
  kit.hub.publish('second', 'log', text)
  kit.hub.publish('platform', 'done', null)
  await client.received(18)
  await client.settled()
  const ends = client.frames.filter(({ data }) => data !== text)
  t.same(ends.map(({ channel: name, event }) => `${name} ${event}`).sort(), ['platform done', 'second log'])
  t.match(kit.hub.counts, { dropped: 5 })
})

test('a flood of states leaves the latest of them, and what fits besides', async t => {
  const kit = await start(t)
  kit.hub.addChannels('states', [
    channel('of:{id}', { plugin: 'states', current: { event: 'done', read: async () => new Map() } })
  ])
  const client = await kit.connect()
  await client.subscribe(`of:${knownId}`)
  const text = 'x'.repeat(1_000_000)
  for (let n = 1; n <= 20; n++) kit.hub.publish(`of:${knownId}`, 'done', `${n} ${text}`)
  await client.received(17)
  await client.settled()
  t.same(
    client.data.map(data => Number.parseInt(String(data), 10)),
    [...Array.from({ length: 16 }, (_, n) => n + 1), 20]
  )
  t.match(kit.hub.counts, { dropped: 3 })
})

test('what is too large is told of also when it comes in the middle of a round and nothing after it', async t => {
  const warnings: object[] = []
  const log = { warn: (fields: object) => warnings.push(fields) } as unknown as Log
  const fanOut = new FanOut(log)
  const topic = new Topic('platform', undefined, () => {}, log)
  let sends = 0
  const send = (): void => {
    sends++
    fanOut.add(topic, Buffer.alloc(17 * 1024 * 1024))
  }
  topic.add({ outbox: { send } } as unknown as Connection)
  fanOut.add(topic, Buffer.from('a'))
  await until(() => warnings.length > 0, 'a warning')
  t.same(warnings, [{ dropped: 1 }])
  t.equal(sends, 1)
})

test('who leaves between a publish and its round hears nothing of it, and who joins neither', async t => {
  const log = { warn: () => {} } as unknown as Log
  const fanOut = new FanOut(log)
  const topic = new Topic('platform', undefined, () => {}, log)
  const heard: string[] = []
  const reader = (name: string): Connection =>
    ({ outbox: { send: () => heard.push(name) } }) as unknown as Connection
  const [stays, leaves, joins] = [reader('stays'), reader('leaves'), reader('joins')]
  for (const one of [stays, leaves]) topic.add(one)
  fanOut.add(topic, Buffer.from('a'))
  fanOut.seal(topic)
  topic.add(joins)
  topic.delete(leaves)
  await until(() => heard.length > 0, 'the round')
  await new Promise(resolve => setImmediate(resolve))
  t.same(heard, ['stays'])
})

test('a client that stops reading is given up after ten messages dropped in a row; the others notice nothing', async t => {
  const kit = await start(t)
  const stopped = await rawClient(kit)
  const reader = await kit.connect()
  await reader.subscribe('platform')
  await until(() => kit.hub.connections === 2 && kit.hub.hasSubscribers('platform'), 'both are connected')
  await wait(10)
  stopped.pause()
  const server = kit.sockets[0]!
  const text = 'x'.repeat(64 * 1024)
  let published = 0
  // Fills the system's buffers: some 4 MiB on a loopback connection.
  for (; server._socket?.writableNeedDrain !== true && published < 2000; published++) {
    kit.hub.publish('platform', 'log', text)
    await reader.received(published + 1)
    await wait(0)
  }
  const beforeBlocked = published
  t.ok(
    beforeBlocked * text.length > 1024 * 1024,
    `${beforeBlocked} messages of 64 KiB before the first write was refused`
  )
  const publishSmall = async (count: number) => {
    for (let n = 0; n < count; n++) {
      kit.hub.publish('platform', 'log', n)
      published++
      await reader.received(published)
    }
  }
  await publishSmall(64 + 9)
  t.equal(server.readyState, 1, 'after 64 kept and nine dropped it is still connected')
  await publishSmall(1)
  await until(() => server.readyState === 3, 'the connection is ended')
  t.equal(server.readyState, 3, 'the tenth drop ends it')
  t.equal(kit.hub.connections, 1)
  t.equal(reader.frames.length, published)
  t.same(kit.hub.counts, { published, dropped: 0, missed: 10, disconnected: 1 })
  stopped.destroy()
})

test('a client that reads again in time gets what was kept, and the count starts anew', async t => {
  const kit = await start(t)
  const slow = await rawClient(kit)
  let bytes = 0
  let tail = ''
  slow.on('data', data => {
    bytes += data.length
    tail = (tail + String(data)).slice(-200)
  })
  await until(() => kit.hub.hasSubscribers('platform'), 'a subscription')
  const server = kit.sockets[0]!
  for (let round = 0; round < 3; round++) {
    slow.pause()
    const text = 'x'.repeat(64 * 1024)
    for (let n = 0; server._socket?.writableNeedDrain !== true && n < 2000; n++) {
      kit.hub.publish('platform', 'log', text)
      await wait(0)
    }
    for (let n = 0; n < 64 + 9; n++) {
      kit.hub.publish('platform', 'log', `kept ${round} ${n}`)
      await wait(0)
    }
    slow.resume()
    await until(() => tail.includes(`kept ${round} 63`), 'the last message that was kept')
    t.match(tail, `"kept ${round} 63"`)
    t.notMatch(tail, `"kept ${round} 64"`)
    t.equal(server.readyState, 1)
  }
  t.ok(bytes > 1024 * 1024)
  slow.destroy()
})

test('nothing follows the close of a socket, neither message nor ping', async t => {
  const kit = await start(t)
  const closing = await rawClient(kit)
  t.teardown(() => closing.destroy())
  let bytes = Buffer.alloc(0)
  closing.on('data', data => {
    bytes = Buffer.concat([bytes, data])
  })
  await until(() => kit.hub.hasSubscribers('platform'), 'a subscription')
  const reader = await kit.connect()
  await reader.subscribe('platform')
  const before = bytes.length
  kit.sockets[0]?.close(1000)
  kit.hub.publish('platform', 'log', 'late')
  await reader.received(1)
  await kit.clock.advance(30_000)
  await reader.settled()
  await until(() => bytes.length > before, 'the close')
  t.equal(bytes.subarray(before).toString('hex'), '880203e8')
})

test('a ping between messages never lands inside one', async t => {
  const kit = await start(t)
  const client = await kit.connect()
  await client.subscribe('platform')
  for (let n = 0; n < 200; n++) {
    kit.hub.publish('platform', 'log', 'y'.repeat(n * 97))
    kit.sockets[0]?.ping()
    client.socket.ping()
    if (n % 10 === 0) await wait(0)
  }
  await client.received(200)
  t.same(
    client.data.map(text => String(text).length),
    Array.from({ length: 200 }, (_, n) => n * 97)
  )
})

test('thousands of subscribers: each gets every message in order, and the work is sliced', async t => {
  const kit = await start(t)
  const count = 1000
  const received = new Map<Socket, number[]>()
  const sockets: Socket[] = []
  for (let n = 0; n < count; n += 100) {
    sockets.push(...(await Promise.all(Array.from({ length: 100 }, () => rawClient(kit)))))
  }
  for (const socket of sockets) {
    const numbers: number[] = []
    received.set(socket, numbers)
    socket.on('data', data => {
      for (const match of String(data).matchAll(/"data":(\d+)/g)) numbers.push(Number(match[1]))
    })
  }
  await wait(100)
  for (let n = 0; n < 20; n++) {
    kit.hub.publish('platform', 'log', n)
    if (n % 5 === 4) await wait(1)
  }
  await until(() => [...received.values()].every(numbers => numbers.length >= 20), 'everybody has twenty')
  const expected = Array.from({ length: 20 }, (_, n) => n).join()
  t.equal([...received.values()].filter(numbers => numbers.join() === expected).length, count)

  const before = kit.sockets.map(socket => socket._socket?.bytesWritten)
  const reached = () =>
    kit.sockets.filter((socket, index) => socket._socket?.bytesWritten !== before[index]).length
  kit.hub.publish('platform', 'log', 'x'.repeat(64 * 1024))
  kit.hub.publish('platform', 'log', 20)
  const progress = new Set<number>()
  for (const late = performance.now() + 30_000; reached() < count; ) {
    if (performance.now() > late) throw new Error(`${reached()} of ${count} sockets were written to`)
    await new Promise(resolve => setImmediate(resolve))
    progress.add(reached())
  }
  t.ok(progress.size >= 3, `between the slices others had a turn: ${[...progress].join()}`)
  await until(
    () => [...received.values()].every(numbers => numbers.length >= 21),
    'everybody has the last one'
  )
  t.ok([...received.values()].every(numbers => numbers.at(-1) === 20))
  for (const socket of sockets) socket.destroy()
})

test('a long work lets the loop turn every few milliseconds, and ends with its error', async t => {
  let isDone = false
  let turns = 0
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  function* work() {
    for (let n = 0; n < 40; n++) {
      for (const end = performance.now() + 1; performance.now() < end; );
      yield
    }
  }
  await inSlices(work())
  isDone = true
  t.ok(turns >= 7, `${turns} turns in 40 ms`)
  await t.rejects(
    inSlices(
      (function* () {
        yield
        throw new Error('broken')
      })()
    ),
    { message: 'broken' }
  )
})
