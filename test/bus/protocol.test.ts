import { setTimeout as wait } from 'node:timers/promises'
import { bounded } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createRedactor } from '../../core/log/redactor.js'
import { channel, foreignId, type KitOptions, knownId, startHub } from './hub-kit.js'

const logs = `build-logs:${knownId}`

async function start(t: Test, options: KitOptions = {}) {
  const kit = await startHub(options)
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [
    channel('platform'),
    channel('build-logs:{deploymentId}', { endsWith: 'done' }),
    channel('requests:{applicationId}'),
    channel('requests:all')
  ])
  return kit
}

test('a subscribe is not acknowledged; messages start, with what was published before left out', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  hub.publish('platform', 'log', 'before')
  await client.subscribe('platform')
  t.same(client.frames, [])
  hub.publish('platform', 'log', { n: 1, none: undefined, nil: null })
  hub.publish('platform', 'log', undefined)
  await client.received(2)
  t.same(client.frames, [
    { channel: 'platform', event: 'log', data: { n: 1, nil: null } },
    { channel: 'platform', event: 'log', data: null }
  ])
})

test('who is admitted in the tick of a message does not get it, and who was there does', async t => {
  let admit: (isGranted: boolean) => void = () => {}
  const { hub, connect } = await start(t, {
    authorize: () =>
      new Promise(resolve => {
        admit = resolve
      })
  })
  const [early, late] = [await connect(), await connect()]
  await early.subscribe('platform')
  admit(true)
  await late.subscribe('platform')
  hub.publish('platform', 'log', 1)
  admit(true)
  await late.settled()
  hub.publish('platform', 'log', 2)
  await early.received(2)
  await late.received(1)
  t.same(early.data, [1, 2])
  t.same(late.data, [2])
})

test('who unsubscribes in the tick of a message does not get it, whoever comes meanwhile', async t => {
  let admit: (isGranted: boolean) => void = () => {}
  const { hub, connect, sockets } = await start(t, {
    authorize: () =>
      new Promise(resolve => {
        admit = resolve
      })
  })
  const [leaving, coming] = [await connect(), await connect()]
  await leaving.subscribe('platform')
  admit(true)
  await coming.subscribe('platform')
  hub.publish('platform', 'log', 'too late for one, too early for the other')
  admit(true)
  for (let n = 0; n < 10; n++) await Promise.resolve()
  sockets[0]?.emit('message', Buffer.from('{"action":"unsubscribe","channel":"platform"}'), false)
  await wait(0)
  await leaving.settled()
  await coming.settled()
  t.same([...leaving.frames, ...coming.frames], [])
  t.ok(hub.hasSubscribers('platform'))
})

test('an id reaches its own channel only, and a fixed name goes before an id', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  await client.subscribe(logs, 'requests:all')
  hub.publish(`build-logs:${foreignId}`, 'log', 'other')
  hub.publish('requests:all', 'log', 'all')
  hub.publish(logs, 'log', 'own')
  await client.received(2)
  t.same(client.frames.map(frame => frame.channel).sort(), [logs, 'requests:all'])
})

test('every refusal is the same, on the channel that was asked for, and hurts nothing else', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  const refused = [
    `build-logs:${foreignId}`,
    'unlisted',
    'build-logs:',
    'build-logs:1',
    `build-logs:${knownId.toUpperCase()}`,
    `build-logs:${knownId.replaceAll('-', '')}`,
    `${logs} `,
    `platform:${knownId}`,
    'build-logs:{deploymentId}',
    '__proto__',
    'constructor'
  ]
  await client.subscribe('platform', ...refused)
  await client.received(refused.length)
  t.same(client.frames.map(frame => frame.channel).sort(), [...refused].sort())
  for (const frame of client.frames)
    t.same({ event: frame.event, data: frame.data }, { event: 'error', data: { error: 'access denied' } })
  hub.publish('platform', 'log', 'still here')
  await client.received(refused.length + 1)
  t.equal(client.data.at(-1), 'still here')
})

test('an access check that fails is a refusal', async t => {
  const { connect, logged } = await start(t, {
    authorize: async () => {
      throw new Error('database away')
    }
  })
  const client = await connect()
  await client.subscribe('platform')
  t.same(client.frames, [{ channel: 'platform', event: 'error', data: { error: 'access denied' } }])
  t.match(logged.at(-1), { err: { message: 'database away' }, channel: 'platform' })
})

test('the identity of the handshake is asked with the record and the id', async t => {
  const asked: unknown[] = []
  const { connect } = await start(t, {
    authorize: async (record, id, caller) => {
      asked.push([record.name, id, caller.user.id])
      return true
    }
  })
  const client = await connect('berta')
  await client.subscribe(logs, 'platform')
  t.same(asked, [
    ['build-logs:{deploymentId}', knownId, 'berta'],
    ['platform', undefined, 'berta']
  ])
})

test('what asks for nothing is ignored in silence', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  await client.subscribe('platform')
  await client.send(
    { action: 'publish', channel: 'platform' },
    { action: 'subscribe', channel: '' },
    { action: 'subscribe' },
    { channel: 'platform' },
    { action: 'subscribe', channel: 7 },
    { action: ['subscribe'], channel: 'platform' },
    { action: 'unsubscribe', channel: 'unknown' },
    '[]',
    '"subscribe"',
    'null',
    '7',
    '{}'
  )
  t.same(client.frames, [])
  hub.publish('platform', 'log', 1)
  await client.received(1)
  t.same(client.data, [1])
})

test('subscribing twice changes nothing, and one unsubscribe ends it', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  await client.subscribe('platform', 'platform')
  await client.subscribe('platform')
  hub.publish('platform', 'log', 1)
  await client.received(1)
  await client.send({ action: 'unsubscribe', channel: 'platform' })
  t.notOk(hub.hasSubscribers('platform'))
  hub.publish('platform', 'log', 2)
  await client.settled()
  t.same(client.data, [1])
})

test('a binary frame is read as text', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  client.socket.send(Buffer.from('{"action":"subscribe","channel":"platform"}'))
  await client.settled()
  t.ok(hub.hasSubscribers('platform'))
})

test('malformed JSON closes with 1007, text or binary', async t => {
  const { hub, connect } = await start(t)
  for (const frame of ['{"action":', '', Buffer.from([0xff, 0xfe])]) {
    const client = await connect()
    await client.subscribe('platform')
    client.socket.send(frame)
    t.match(await client.closed, { code: 1007 })
    t.notOk(hub.hasSubscribers('platform'))
  }
})

test('a frame over 4 KiB closes with 1009, one of 4 KiB does not', async t => {
  const { connect } = await start(t)
  const client = await connect()
  const base = JSON.stringify({ action: 'none', channel: '' })
  await client.send(base.padEnd(4096))
  client.socket.send(base.padEnd(4097))
  t.match(await client.closed, { code: 1009 })
  const other = await connect()
  other.socket.send('x'.repeat(100_000))
  t.match(await other.closed, { code: 1009 })
})

test('after the close nothing of the same client is heard', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  client.socket.send('broken')
  client.socket.send('{"action":"subscribe","channel":"platform"}')
  await client.closed
  t.notOk(hub.hasSubscribers('platform'))
})

test('one connection too many of a user is accepted, then closed with 1013', async t => {
  const { hub, connect } = await start(t, { maxConnectionsPerUser: 2 })
  const first = await connect()
  await connect()
  const third = await connect()
  t.same(await third.closed, { code: 1013, reason: 'too many connections' })
  await connect('berta')
  t.equal(hub.connections, 3)
  first.socket.close()
  await first.closed
  await until(() => hub.connections === 2, 'its place is free')
  const again = await connect()
  await again.subscribe('platform')
  t.equal(hub.connections, 3)
})

test('the last event of a channel is sent, then everybody is unsubscribed', async t => {
  const { hub, connect } = await start(t)
  const [one, two] = [await connect(), await connect()]
  await one.subscribe(logs)
  await two.subscribe(logs, 'platform')
  hub.publish(logs, 'log', 'line')
  hub.publish(logs, 'done', null)
  hub.publish(logs, 'log', 'too late')
  t.notOk(hub.hasSubscribers(logs))
  await one.received(2)
  await two.received(2)
  await one.settled()
  for (const client of [one, two])
    t.same(
      client.frames.map(frame => [frame.event, frame.data]),
      [
        ['log', 'line'],
        ['done', null]
      ]
    )
  await one.subscribe(logs)
  hub.publish(logs, 'log', 'a new beginning')
  await one.received(3)
  t.equal(one.data.at(-1), 'a new beginning')
})

test('an unsubscribe that overtakes the access check wins, and the next subscribe counts again', async t => {
  const answers: Array<(isGranted: boolean) => void> = []
  const { hub, connect } = await start(t, {
    authorize: () =>
      new Promise(resolve => {
        answers.push(resolve)
      })
  })
  const client = await connect()
  const unsubscribe = { action: 'unsubscribe', channel: 'platform' }
  await client.subscribe('platform')
  await client.send(unsubscribe)
  answers[0]?.(true)
  await wait(5)
  t.notOk(hub.hasSubscribers('platform'))
  await client.subscribe('platform')
  await client.send(unsubscribe)
  await client.subscribe('platform')
  t.equal(answers.length, 3)
  answers[2]?.(true)
  await until(() => hub.hasSubscribers('platform'), 'the subscription is there')
  t.ok(hub.hasSubscribers('platform'))
  answers[1]?.(false)
  await client.received(1)
  t.equal(client.frames[0]?.event, 'error', 'the refused question is still answered')
  t.ok(hub.hasSubscribers('platform'))
})

test('a socket that closes during the access check is forgotten', async t => {
  const answers: Array<(isGranted: boolean) => void> = []
  const { hub, connect } = await start(t, {
    authorize: () =>
      new Promise(resolve => {
        answers.push(resolve)
      })
  })
  const client = await connect()
  await client.subscribe('platform')
  client.socket.terminate()
  await until(() => hub.connections === 0, 'the connection is gone')
  answers[0]?.(true)
  await wait(5)
  t.notOk(hub.hasSubscribers('platform'))
  t.equal(hub.connections, 0)
})

test('a flood of subscribes waits in the socket, eight questions run at a time, and all are answered', async t => {
  let running = 0
  let most = 0
  const { connect, sockets } = await start(t, {
    authorize: async () => {
      most = Math.max(most, ++running)
      await wait(1)
      running--
      return false
    }
  })
  const client = await connect()
  let isEverPaused = false
  const watch = setInterval(() => {
    isEverPaused ||= sockets[0]?.isPaused === true
  }, 1)
  const id = (n: number) => `${String(n).padStart(8, '0')}${knownId.slice(8)}`
  for (let n = 0; n < 400; n++)
    client.socket.send(JSON.stringify({ action: 'subscribe', channel: `build-logs:${id(n)}` }))
  await client.received(400)
  clearInterval(watch)
  t.equal(client.frames.length, 400)
  t.equal(most, 8)
  t.ok(isEverPaused)
  t.notOk(sockets[0]?.isPaused)
})

test('one socket holds a thousand subscriptions, and no more', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  const name = (n: number) => `build-logs:${String(n).padStart(8, '0')}${knownId.slice(8)}`
  for (let n = 0; n <= 1000; n++)
    client.socket.send(JSON.stringify({ action: 'subscribe', channel: name(n) }))
  await client.received(1)
  t.same(
    client.frames.map(frame => [frame.channel, frame.event]),
    [[name(1000), 'error']]
  )
  t.ok(hub.hasSubscribers(name(999)))
  await client.send({ action: 'unsubscribe', channel: name(0) })
  await client.subscribe(name(1000))
  t.ok(hub.hasSubscribers(name(1000)))
})

test('a ping goes out every 30 seconds, and who has not answered 10 seconds later is cut off', async t => {
  const { hub, connect, clock, sockets } = await start(t)
  const alive = await connect()
  const dead = await connect()
  dead.socket.on('ping', () => {})
  dead.socket.pong = () => {}
  let pings = 0
  alive.socket.on('ping', () => pings++)
  await clock.advance(29_000)
  await alive.settled()
  t.equal(pings, 0)
  await clock.advance(1_000)
  await alive.settled()
  t.equal(pings, 1)
  await clock.advance(9_000)
  t.equal(hub.connections, 2)
  await clock.advance(1_000)
  t.match(await dead.closed, { code: 1006 })
  t.equal(hub.connections, 1)
  await clock.advance(50_000)
  t.equal(sockets[0]?.readyState, 1)
})

test('a client that the platform does not read from is not taken for dead', async t => {
  let answer = (): void => {}
  const answered = new Promise<void>(resolve => {
    answer = resolve
  })
  const { hub, connect, clock, sockets } = await start(t, {
    authorize: async () => {
      await answered
      return true
    }
  })
  const client = await connect()
  const name = (n: number) => `build-logs:${String(n).padStart(8, '0')}${knownId.slice(8)}`
  for (let n = 0; n < 100; n++) client.socket.send(JSON.stringify({ action: 'subscribe', channel: name(n) }))
  await until(() => sockets[0]?.isPaused === true, 'its questions fill the queue')
  for (let n = 0; n < 9; n++) await clock.advance(10_000)
  t.equal(sockets[0]?.readyState, 1)
  answer()
  await until(() => hub.hasSubscribers(name(99)), 'all of it is answered')
  await client.settled()
})

test('an event that the channel does not declare, or data that is not JSON, is logged and not sent', async t => {
  const { hub, connect, logged } = await start(t)
  const client = await connect()
  await client.subscribe('platform')
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  hub.publish('platform', 'surprise', 1)
  hub.publish('platform', 'log', cycle)
  hub.publish('platform', 'log', 1n)
  await client.settled()
  t.same(client.frames, [])
  t.equal(logged.length, 3)
})

test('a live secret does not leave in an event', async t => {
  const redactor = createRedactor()
  redactor.add(['hunter22', '12345'])
  const { hub, connect } = await start(t, { redactor })
  const client = await connect()
  await client.subscribe('platform')
  hub.publish('platform', 'log', { msg: 'password hunter22', n: 12345 })
  await client.received(1)
  t.same(client.data, [{ msg: 'password [REDACTED]', n: 12345 }])
})

test('a message is what it was when it was published', async t => {
  const { hub, connect } = await start(t)
  const client = await connect()
  await client.subscribe('platform')
  const data = { n: 1 }
  hub.publish('platform', 'log', data)
  data.n = 2
  await client.received(1)
  t.same(client.data, [{ n: 1 }])
})

test('closing the hub closes every socket with 1000, even of a client that does not answer', async t => {
  const kit = await startHub()
  const polite = await kit.connect()
  const rude = await kit.connect()
  rude.socket.pause()
  // ws itself would wait 30 s for its answer.
  await bounded(() => kit.close(), { ms: 15_000, what: 'the hub' })
  t.match(await polite.closed, { code: 1000, reason: '' })
  t.equal(kit.hub.connections, 0)
  rude.socket.terminate()
})
