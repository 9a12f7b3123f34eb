import { EventEmitter } from 'node:events'
import type { Log, SignedInCaller } from 'busbar/sdk'
import { test } from 'tap'
import { WebSocket } from 'ws'
import { ChannelAccess } from '../../core/bus/channel-access.js'
import { type ChannelRecord, ChannelTable } from '../../core/bus/channel-table.js'
import { Connection, type Subscribable } from '../../core/bus/connection.js'
import { FanOut } from '../../core/bus/fan-out.js'
import { startHeartbeat } from '../../core/bus/heartbeat.js'
import { RelaySender } from '../../core/bus/relay-sender.js'
import { Topic } from '../../core/bus/topic.js'
import { testClock } from '../../sdk/testing/test-clock.js'
import { until } from '../../sdk/testing/until.js'

function logged(): { readonly log: Log; readonly lines: [fields: object, message: string][] } {
  const lines: [object, string][] = []
  const note = (fields: object, message: string): void => void lines.push([fields, message])
  return { log: { warn: note, error: note } as unknown as Log, lines }
}

test('messages of one turn go to other processes in one frame, in their order, and what is said between them', async t => {
  const frames: unknown[] = []
  const sender = new RelaySender(
    'a',
    async sent => void frames.push(...sent.map(frame => JSON.parse(frame) as unknown)),
    logged().log
  )
  sender.send('c', 'e', '1')
  sender.send('c', 'e', '2')
  sender.say('{"kind":"alive","from":"a"}')
  sender.send('c', 'e', '3')
  t.same(frames, [], 'a publisher does not wait')
  await sender.idle()
  t.same(frames, [
    {
      kind: 'messages',
      from: 'a',
      number: 0,
      messages: [
        ['c', 'e', 1],
        ['c', 'e', 2]
      ]
    },
    { kind: 'alive', from: 'a' },
    { kind: 'messages', from: 'a', number: 2, messages: [['c', 'e', 3]] }
  ])
})

test('every frame fits into a NOTIFY, whatever the messages', async t => {
  const frames: string[] = []
  const sender = new RelaySender('a'.repeat(36), async sent => void frames.push(...sent), logged().log)
  for (let n = 0; n < 50; n++) sender.send('channel', 'event', JSON.stringify('x'.repeat(n * 100)))
  sender.send('channel', 'event', JSON.stringify('y'.repeat(20_000)))
  await sender.idle()
  for (const frame of frames) t.ok(Buffer.byteLength(frame) <= 7500, `${Buffer.byteLength(frame)} bytes`)
  const messages = frames.flatMap(frame => (JSON.parse(frame) as { messages?: unknown[] }).messages ?? [])
  t.equal(messages.length, 50)
  t.ok(frames.length < 40, `${frames.length} frames for 50 messages`)
  const pieces = frames.filter(frame => frame.includes('"kind":"piece"'))
  t.equal(pieces.length, 4)
})

test('pieces of a long message leave in few statements, and what is too much at once is dropped and counted', async t => {
  const { log, lines } = logged()
  const statements: (readonly string[])[] = []
  const sender = new RelaySender('a', async frames => void statements.push(frames), log)
  sender.send('c', 'e', '0')
  sender.send('c', 'e', `"${'x'.repeat(1024 * 1024)}"`)
  sender.say('{"kind":"alive","from":"a"}')
  sender.send('c', 'e', '1')
  await sender.idle()
  const kinds = statements.map(frames => frames.map(frame => (JSON.parse(frame) as { kind: string }).kind))
  t.same(kinds.slice(-2), [['alive'], ['messages']], 'in their order')
  t.same(
    kinds.map(({ length }) => length),
    [64, 64, 64, 4, 1, 1]
  )
  t.same(
    kinds.slice(0, 4).flat(),
    ['messages', ...Array.from({ length: 195 }, () => 'piece')],
    'messages and pieces together'
  )
  t.same(lines, [])
  for (let n = 0; n < 1000; n++) sender.send('c', 'e', `"${'x'.repeat(7000)}"`)
  await sender.idle()
  t.equal(lines.length, 1, 'told once')
  t.ok((lines[0]?.[0] as { dropped: number }).dropped > 300)
  sender.send('c', 'e', '1')
  await sender.idle()
  t.equal(lines.length, 1, 'and then there is room again')
})

test('exactly 4 MiB may wait to be sent', async t => {
  for (const { messages, dropped } of [
    { messages: 1024, dropped: 0 },
    { messages: 1025, dropped: 1 }
  ]) {
    const { log, lines } = logged()
    let arrived = 0
    const sender = new RelaySender(
      'a',
      async frames => {
        for (const frame of frames) arrived += (JSON.parse(frame) as { messages: unknown[] }).messages.length
      },
      log
    )
    const message = `"${'x'.repeat(4096 - '["c","e",""]'.length)}"`
    for (let n = 0; n < messages; n++) sender.send('c', 'e', message)
    await sender.idle()
    t.equal(arrived, 1024)
    t.match(lines, dropped === 0 ? { length: 0 } : [[{ dropped }]])
  }
})

test('an outage is told once, and again after it has been over', async t => {
  const { log, lines } = logged()
  let isDown = true
  const sender = new RelaySender(
    'a',
    async () => {
      if (isDown) throw new Error('down')
    },
    log
  )
  const send = async (): Promise<void> => {
    sender.send('c', 'e', '1')
    await sender.idle()
  }
  await send()
  await send()
  t.equal(lines.length, 1)
  isDown = false
  await send()
  isDown = true
  await send()
  t.equal(lines.length, 2)
})

test('who has not answered a ping for ten seconds is disconnected, unless we do not read from them', async t => {
  const clock = testClock()
  const told: string[] = []
  const client = (name: string, isPaused = false) => {
    const socket = Object.assign(new EventEmitter(), {
      isPaused,
      readyState: WebSocket.OPEN,
      _socket: { on: () => {}, write: () => told.push(`ping ${name}`) },
      terminate: () => told.push(`end ${name}`)
    })
    const connection = new Connection(socket as unknown as WebSocket, caller, {} as Subscribable, () => {})
    return { socket, connection }
  }
  const [quick, dead, full] = [client('quick'), client('dead'), client('full', true)]
  const stop = startHeartbeat(clock, new Set([quick, dead, full].map(({ connection }) => connection)))
  t.teardown(stop)
  await clock.advance(29_999)
  t.same(told, [])
  await clock.advance(1)
  t.same(told.splice(0), ['ping quick', 'ping dead', 'ping full'])
  quick.socket.emit('pong')
  await clock.advance(9_999)
  t.same(told, [])
  await clock.advance(1)
  t.same(told.splice(0), ['end dead'])
  await clock.advance(10_000)
  t.same(told, [])
  await clock.advance(10_000)
  t.same(told.splice(0), ['ping quick', 'ping dead', 'ping full'], 'every half minute')
  stop()
  await clock.advance(60_000)
  t.same(told, [])
})

const record = (fields: Partial<ChannelRecord> = {}): ChannelRecord =>
  ({ plugin: 'apps', name: 'apps', prefix: 'apps', param: null, events: {}, ...fields }) as ChannelRecord
const caller = { kind: 'session' } as SignedInCaller

test('access is asked for again when facts or declarations have changed meanwhile, and only then', async t => {
  const { log } = logged()
  const channels = new ChannelTable()
  const declared = record()
  channels.replace('apps', [declared])
  const asked: ChannelRecord[] = []
  let during: (() => void) | undefined
  const access = new ChannelAccess(
    channels,
    {
      decide: async one => {
        asked.push(one)
        during?.()
        during = undefined
        return { isGranted: true, project: 'p' }
      },
      decideIn: async () => true
    },
    log
  )
  t.same(await access.decide('apps', caller), { isGranted: true, project: 'p' })
  t.equal(asked.splice(0).length, 1)
  during = () => access.factsChanged()
  t.same(await access.decide('apps', caller), { isGranted: true, project: 'p' })
  t.equal(asked.splice(0).length, 2, 'the facts have changed')
  const anew = record()
  during = () => channels.replace('apps', [anew])
  await access.decide('apps', caller)
  t.same(
    asked.splice(0).map(one => one === anew),
    [false, true],
    'it is declared anew'
  )
  during = () => channels.remove('apps')
  t.same(await access.decide('apps', caller), { isGranted: false, project: undefined })
  t.same(await access.decide('apps', caller), { isGranted: false, project: undefined })
  t.equal(asked.length, 1, 'what nobody declares is refused unasked')
})

test('what cannot be decided is logged and is no answer', async t => {
  const { log, lines } = logged()
  const channels = new ChannelTable()
  channels.replace('apps', [record()])
  const fail = async (): Promise<never> => await Promise.reject(new Error('down'))
  const access = new ChannelAccess(channels, { decide: fail, decideIn: fail }, log)
  t.equal(await access.decide('apps', caller), undefined)
  t.equal(await access.decideIn(record(), 'p', caller), undefined)
  t.match(lines, [
    [{ plugin: 'apps', channel: 'apps' }, 'access to a channel could not be decided'],
    [{ plugin: 'apps', channel: 'apps' }, 'access to a channel could not be decided']
  ])
  const refusing = new ChannelAccess(
    channels,
    { decide: async () => ({ isGranted: false, project: undefined }), decideIn: async () => false },
    log
  )
  t.same(await refusing.decide('apps', caller), { isGranted: false, project: undefined })
  t.same(await refusing.decideIn(record(), 'p', caller), { isGranted: false, project: 'p' })
})

function reader(): { readonly connection: Connection; readonly writes: string[][] } {
  const writes: string[][] = []
  const send = (parcels: readonly { readonly joined: Buffer }[]): void =>
    void writes.push(parcels.map(({ joined }) => joined.toString()))
  return { connection: { outbox: { send } } as unknown as Connection, writes }
}

const turn = async (): Promise<void> => {
  for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve))
}

test('what is published in one turn goes to each socket in one write, to those who were there', async t => {
  const fanOut = new FanOut(logged().log)
  const [one, two] = [
    new Topic('one', '', () => {}, logged().log),
    new Topic('two', '', () => {}, logged().log)
  ]
  const [ann, bob, late] = [reader(), reader(), reader()]
  one.add(ann.connection)
  one.add(bob.connection)
  two.add(ann.connection)
  fanOut.add(one, Buffer.from('a'))
  fanOut.add(one, Buffer.from('b'))
  fanOut.seal(one)
  fanOut.seal(one)
  one.add(late.connection)
  fanOut.add(two, Buffer.from('c'))
  fanOut.add(one, Buffer.from('d'))
  one.delete(bob.connection)
  t.same(ann.writes, [], 'a publisher does not wait')
  await turn()
  t.same(ann.writes, [['ab', 'c', 'd']])
  t.same(bob.writes, [], 'who has left hears nothing more')
  t.same(late.writes, [['d']], 'who comes later hears nothing of before')
  fanOut.add(two, Buffer.from('e'))
  await turn()
  t.same(ann.writes[1], ['e'])
})

test('more than 16 MiB in one round are dropped and counted, and the next round has room again', async t => {
  const { log, lines } = logged()
  const fanOut = new FanOut(log)
  const topic = new Topic('one', '', () => {}, log)
  const { connection, writes } = reader()
  topic.add(connection)
  const mebibyte = Buffer.alloc(1024 * 1024, 'x')
  for (let n = 0; n < 16; n++) fanOut.add(topic, mebibyte)
  fanOut.add(topic, Buffer.from('y'))
  await turn()
  t.match(lines, [[{ dropped: 1 }, /messages were dropped/]])
  t.equal(writes[0]?.[0]?.length, 16 * mebibyte.length)
  fanOut.add(topic, Buffer.from('z'))
  await turn()
  t.same(writes[1], ['z'])
  t.equal(lines.length, 1)
  fanOut.add(topic, Buffer.alloc(16 * 1024 * 1024 + 1))
  await turn()
  t.match(lines[1], [{ dropped: 1 }], 'also when nothing else is said')
})

test('a round begins when the one before has ended, however long that takes', async t => {
  const fanOut = new FanOut(logged().log)
  const topic = new Topic('one', '', () => {}, logged().log)
  const order: string[] = []
  const readers = Array.from({ length: 40 }, (_, at) => {
    const send = (batches: readonly { readonly joined: Buffer }[]): void => {
      order.push(...batches.map(({ joined }) => `${joined} to ${at}`))
      // More than a slice of the work by the 32nd.
      if (at < 32) for (const end = performance.now() + 0.5; performance.now() < end; );
      if (at === 0 && order.length === 1) fanOut.add(topic, Buffer.from('b'))
    }
    return { outbox: { send } } as unknown as Connection
  })
  for (const one of readers) topic.add(one)
  fanOut.add(topic, Buffer.from('a'))
  await until(() => order.length === 80, 'both rounds')
  const each = (text: string): string[] => readers.map((_, at) => `${text} to ${at}`)
  t.same(order, [...each('a'), ...each('b')])
})

test('others have a turn after each 32 writes, in a round of one batch and of several', async t => {
  for (const batches of [1, 2]) {
    const fanOut = new FanOut(logged().log)
    const topics = ['one', 'two'].slice(0, batches).map(name => new Topic(name, '', () => {}, logged().log))
    const turns: number[] = []
    let now = 0
    let isOver = false
    const count = (): void => {
      now++
      if (!isOver) setImmediate(count)
    }
    t.teardown(() => {
      isOver = true
    })
    setImmediate(count)
    const send = (): void => {
      turns.push(now)
      for (const end = performance.now() + 0.5; performance.now() < end; );
    }
    for (let n = 0; n < 65; n++)
      for (const topic of topics) topic.add({ outbox: { send } } as unknown as Connection)
    for (const topic of topics) fanOut.add(topic, Buffer.from('a'))
    await until(() => turns.length === 65 * batches, 'the round')
    isOver = true
    const steps = [...new Set(turns)].map(turn => turns.filter(one => one === turn).length)
    t.same(steps.slice(0, 2), batches === 1 ? [32, 32] : [steps[0], 32], `${batches}`)
    t.ok((steps[0] ?? 0) <= 32)
  }
})
