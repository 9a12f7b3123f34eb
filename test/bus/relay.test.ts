import { setTimeout as wait } from 'node:timers/promises'
import { testClock, until } from 'busbar/sdk/testing'
import pg from 'pg'
import { type Test, test } from 'tap'
import { createRelay } from '../../core/bus/relay.js'
import { frameBytes } from '../../core/bus/relay-frame.js'
import { type BulkSignals, openListener } from '../../core/database/listener.js'
import { openPostgres } from '../../core/database/postgres.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'
import { createDatabase } from '../cluster/database.js'
import { channel, startHub } from './hub-kit.js'
import { Line } from './line.js'

const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })
const records = [channel('platform', { endsWith: 'done' }), channel('second')]

async function hubOn(t: Test, signals: BulkSignals) {
  const kit = await startHub({ relay: createRelay({ signals, log }) })
  kit.hub.addChannels('demo', records)
  t.teardown(() => kit.close())
  return kit
}

test('a message reaches subscribers of another process, once, and only what somebody wants is sent', async t => {
  const line = new Line()
  const a = await hubOn(t, line.signals())
  const b = await hubOn(t, line.signals())
  const here = await a.connect()
  const there = await b.connect()
  await here.subscribe('platform')
  await there.subscribe('platform')
  await until(
    () => a.hub.hasSubscribers('platform') && b.hub.hasSubscribers('platform'),
    'both hubs know the subscribers'
  )
  await wait(20)
  const before = line.sent.length
  a.hub.publish('second', 'log', 'nobody')
  for (let n = 0; n < 50; n++) a.hub.publish('platform', 'log', { n })
  await here.received(50)
  await there.received(50)
  await there.settled()
  t.same(
    there.data,
    Array.from({ length: 50 }, (_, n) => ({ n }))
  )
  t.same(here.data, there.data)
  t.equal(line.sent.length - before, 1, 'one tick, one signal')

  await there.send({ action: 'unsubscribe', channel: 'platform' })
  await here.send({ action: 'unsubscribe', channel: 'platform' })
  await until(() => !a.hub.hasSubscribers('platform'), 'the subscription is gone')
  t.notOk(a.hub.hasSubscribers('platform'))
  // Each hub tells the other that it wants nothing any more.
  let after = -1
  await until(async () => {
    after = line.sent.length
    await wait(50)
    return line.sent.length === after
  }, 'the hubs have told each other')
  a.hub.publish('platform', 'log', 'unheard')
  await wait(10)
  t.equal(line.sent.length, after)
})

test('a process alone says hello and nothing else', async t => {
  const line = new Line()
  const kit = await hubOn(t, line.signals())
  const client = await kit.connect()
  await client.subscribe('platform', 'second')
  kit.hub.publish('platform', 'log', 1)
  await client.received(1)
  await wait(10)
  t.same(line.kinds(), ['hello'])
})

test('who comes later learns what the others want, and who leaves is forgotten', async t => {
  const line = new Line()
  const a = await hubOn(t, line.signals())
  const client = await a.connect()
  await client.subscribe('platform')
  const late = createRelay({ signals: line.signals(), log })
  await until(() => late.isWanted('platform'), 'the late one knows what is wanted')
  t.ok(late.isWanted('platform'))
  late.watch('second')
  await until(() => a.hub.hasSubscribers('second'), 'the subscription of the other is known')
  t.ok(a.hub.hasSubscribers('second'))
  await late.close()
  await until(() => !a.hub.hasSubscribers('second'), 'the subscription of the other is forgotten')
  t.notOk(a.hub.hasSubscribers('second'))
})

test('the sockets of a user count in all processes together, those that were there before another came too', async t => {
  const line = new Line()
  const kitOn = async () => {
    const kit = await startHub({
      relay: createRelay({ signals: line.signals(), log }),
      maxConnectionsPerUser: 2
    })
    t.teardown(() => kit.close())
    return kit
  }
  const a = await kitOn()
  const first = await a.connect()
  const b = await kitOn()
  await until(() => line.kinds().includes('sockets'), 'the first has said whose sockets it has')
  const second = await b.connect()
  await until(() => line.kinds().filter(kind => kind === 'sockets').length === 2, 'so has the second')
  for (const kit of [a, b]) {
    const third = await kit.connect()
    t.match(await third.closed, { code: 1013, reason: 'too many connections' })
    await (await kit.connect('berta')).settled()
  }
  first.socket.close()
  await first.closed
  const again = await until(async () => {
    const client = await b.connect()
    return (await client.isTurnedAway()) ? undefined : client
  }, 'there is room again')
  t.equal(again.socket.readyState, 1)
  await second.settled()
})

test('a process that has said good-bye hears and says nothing more', async t => {
  const line = new Line()
  const clock = testClock()
  const end = line.signals()
  const [leaving, staying] = [
    createRelay({ signals: end, log, clock }),
    createRelay({ signals: line.signals(), log, clock })
  ]
  const received: string[] = []
  leaving.onMessage((_name, _event, data) => {
    received.push(data)
  })
  leaving.watch('c')
  staying.watch('d')
  await until(() => staying.isWanted('c') && leaving.isWanted('d'), 'both know what the other wants')
  await leaving.close()
  const bye = JSON.parse(line.sent.at(-1) ?? '')
  t.equal(bye.kind, 'bye')
  const before = line.sent.length
  const late = createRelay({ signals: line.signals(), log, clock })
  await until(() => late.isWanted('d'), 'who stays says to a new one what it wants')
  staying.send('c', 'log', '"late"')
  end.reconnect()
  await clock.advance(20_000)
  await staying.close()
  await late.close()
  t.same(
    line.sent.slice(before).filter(text => JSON.parse(text).from === bye.from),
    []
  )
  t.same(received, [])
})

test('the last event of a channel ends it in every process', async t => {
  const line = new Line()
  const a = await hubOn(t, line.signals())
  const b = await hubOn(t, line.signals())
  const there = await b.connect()
  await there.subscribe('platform')
  await until(() => a.hub.hasSubscribers('platform'), 'the subscription of the other is known')
  a.hub.publish('platform', 'log', 1)
  a.hub.publish('platform', 'done', null)
  await there.received(2)
  t.same(
    there.frames.map(frame => frame.event),
    ['log', 'done']
  )
  t.notOk(b.hub.hasSubscribers('platform'))
  await until(() => !a.hub.hasSubscribers('platform'), 'the subscription is gone')
  t.notOk(a.hub.hasSubscribers('platform'))
})

test('messages and lists of any length cross in frames that NOTIFY carries, in order', async t => {
  const line = new Line()
  const received: unknown[] = []
  const sender = createRelay({ signals: line.signals(), log })
  const receiver = createRelay({ signals: line.signals(), log })
  receiver.onMessage((name, event, data) => {
    received.push([name, event, JSON.parse(data)])
  })
  for (let n = 0; n < 1000; n++) receiver.watch(`list:${n}:${'i'.repeat(30)}`)
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  for (let n = 0; n < 1000; n += 100) t.ok(sender.isWanted(`list:${n}:${'i'.repeat(30)}`))
  const texts = [
    'a',
    'é"\n'.repeat(800),
    'x'.repeat(7300),
    'ü'.repeat(3700),
    '😀'.repeat(15_000),
    'b',
    '\u0000'.repeat(5000),
    'last'
  ]
  for (const text of texts) sender.send('c', 'log', JSON.stringify(text))
  await until(() => received.length === texts.length, 'all texts have arrived')
  t.same(
    received,
    texts.map(text => ['c', 'log', text])
  )
  t.ok(line.sent.every(text => Buffer.byteLength(text) <= frameBytes))
  await sender.close()
  await receiver.close()
})

test('what is too much for the line is dropped and counted, and the rest goes on', async t => {
  const line = new Line()
  const warnings: Array<Record<string, unknown>> = []
  const loud = createLog({
    level: 'warn',
    format: 'json',
    redactor: createRedactor(),
    destination: { write: text => warnings.push(JSON.parse(text)) }
  })
  const received: string[] = []
  const sender = createRelay({ signals: line.signals(), log: loud })
  const receiver = createRelay({ signals: line.signals(), log })
  receiver.onMessage((_name, _event, data) => {
    received.push(data)
  })
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  sender.send('c', 'log', JSON.stringify('x'.repeat(5_000_000)))
  sender.send('c', 'log', '1')
  await until(() => received.length === 1 && warnings.length === 1, 'a message and a warning')
  t.same(received, ['1'])
  t.match(warnings[0], { level: 'warn', dropped: 1 })
  const kit = await startHub({ relay: sender })
  t.equal(kit.hub.counts.dropped, 1)
  await kit.close()
  await receiver.close()
})

test('an outage loses messages, not the connection between processes', async t => {
  const line = new Line()
  const ends = [line.signals(), line.signals()] as const
  const received: string[] = []
  const sender = createRelay({ signals: ends[0], log })
  const receiver = createRelay({ signals: ends[1], log })
  receiver.onMessage((_name, _event, data) => {
    received.push(data)
  })
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  line.isDown = true
  sender.send('c', 'log', '"lost"')
  receiver.watch('d')
  await wait(20)
  line.isDown = false
  for (const end of ends) end.reconnect()
  await until(() => sender.isWanted('d'), 'the sender knows what was wanted meanwhile')
  t.ok(sender.isWanted('d'), 'what was missed is said again')
  sender.send('c', 'log', '"back"')
  await until(() => received.length > 0, 'a message')
  t.same(received, ['"back"'])
  await sender.close()
  await receiver.close()
})

test('an outage is logged once, however much is lost in it, and the next one again', async t => {
  const line = new Line()
  const warnings: string[] = []
  const loud = createLog({
    level: 'warn',
    format: 'json',
    redactor: createRedactor(),
    destination: { write: text => warnings.push(JSON.parse(text).msg) }
  })
  const sender = createRelay({ signals: line.signals(), log: loud })
  const receiver = createRelay({ signals: line.signals(), log })
  const received: string[] = []
  receiver.onMessage((_name, _event, data) => {
    received.push(data)
  })
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  for (const outage of [1, 2]) {
    line.isDown = true
    for (let n = 1; n <= 3; n++) {
      const before = line.lost.length
      sender.send('c', 'log', `"lost ${n}"`)
      await until(() => line.lost.length > before, 'a signal got nowhere')
    }
    line.isDown = false
    sender.send('c', 'log', `"back ${outage}"`)
    await until(() => received.includes(`"back ${outage}"`), 'what came after the outage')
    t.same(
      warnings,
      Array.from({ length: outage }, () => 'live messages do not reach other processes')
    )
  }
  await sender.close()
  await receiver.close()
})

test('a process that alone was cut off says what it wants, and learns what the others want', async t => {
  const line = new Line()
  const end = line.signals()
  const cut = createRelay({ signals: end, log })
  const other = createRelay({ signals: line.signals(), log })
  cut.watch('before')
  other.watch('before')
  await until(() => cut.isWanted('before') && other.isWanted('before'), 'both know what the other wants')
  end.isCut = true
  cut.watch('of the cut one')
  cut.unwatch('before')
  other.watch('of the other')
  other.unwatch('before')
  await until(() => line.lost.length === 2, 'two frames that got nowhere')
  await until(() => line.sent.at(-1)?.includes('"less"'), 'the other has said what it wants')
  t.notOk(cut.isWanted('of the other') || other.isWanted('of the cut one'))
  end.isCut = false
  end.reconnect()
  await until(() => other.isWanted('of the cut one'), 'the other knows what the cut one wants')
  await until(() => cut.isWanted('of the other'), 'the cut one knows what the other wants')
  t.notOk(cut.isWanted('before') || other.isWanted('before'), 'what was given up meanwhile is forgotten')
  await cut.close()
  await other.close()
})

test('a long message that lost a piece is left out, and those after it arrive whole', async t => {
  const line = new Line()
  const received: string[] = []
  const sender = createRelay({ signals: line.signals(), log })
  const receiver = createRelay({ signals: line.signals(), log })
  receiver.onMessage((_name, _event, data) => {
    received.push(JSON.parse(data))
  })
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  const texts = ['a', 'b', 'c'].map(letter => letter.repeat(14_000))
  for (const { lost, arrive } of [
    { lost: [], arrive: [0, 1, 2] },
    { lost: [0], arrive: [1, 2] },
    { lost: [1], arrive: [1, 2] },
    { lost: [2], arrive: [1, 2] },
    { lost: [2, 3], arrive: [2] },
    { lost: [2, 3, 4], arrive: [2] },
    { lost: [1, 2, 3], arrive: [2] }
  ]) {
    received.length = 0
    let pieces = 0
    line.loses = data => data.includes('"piece"') && lost.includes(pieces++)
    for (const text of texts) sender.send('c', 'log', JSON.stringify(text))
    sender.send('c', 'log', '"last"')
    await until(() => received.includes('last'), `the message after those that lost ${lost.join()}`)
    t.equal(pieces, 9, 'three pieces each')
    const told = received.map(text => `${text.length} ${text.slice(-1)}`)
    t.same(told, [...arrive.map(index => `14000 ${texts[index]?.slice(-1)}`), '4 t'], `lost: ${lost.join()}`)
  }
  await sender.close()
  await receiver.close()
})

test('what waits for the database is limited; more than that is dropped and counted', async t => {
  const line = new Line()
  const warnings: Array<Record<string, unknown>> = []
  const loud = createLog({
    level: 'warn',
    format: 'json',
    redactor: createRedactor(),
    destination: { write: text => warnings.push(JSON.parse(text)) }
  })
  const received: string[] = []
  const sender = createRelay({ signals: line.signals(), log: loud })
  const receiver = createRelay({ signals: line.signals(), log })
  receiver.onMessage((_name, _event, data) => {
    received.push(JSON.parse(data))
  })
  receiver.watch('c')
  await until(() => sender.isWanted('c'), 'the sender knows what is wanted')
  for (const round of ['first', 'second']) {
    received.length = 0
    warnings.length = 0
    // Of 4 MiB: what has left makes room again.
    for (let n = 0; n < 1000; n++) sender.send('c', 'log', JSON.stringify('x'.repeat(7000)))
    await until(() => warnings.length > 0, 'a warning of what was dropped', 30_000)
    sender.send('c', 'log', JSON.stringify(round))
    await until(() => received.includes(round), 'the message after it')
    const arrived = received.length - 1
    t.ok(arrived > 500 && arrived < 600, `${arrived} of 1000 arrived`)
    t.match(warnings, [{ level: 'warn', dropped: 1000 - arrived }])
  }
  await sender.close()
  await receiver.close()
})

test('a process that falls silent is forgotten, and found again when it speaks', async t => {
  const line = new Line()
  const clock = testClock()
  const ends = [line.signals(), line.signals()] as const
  const one = createRelay({ signals: ends[0], log, clock })
  const other = createRelay({ signals: ends[1], log, clock })
  one.watch('a')
  other.watch('b')
  await until(() => one.isWanted('b') && other.isWanted('a'), 'both know what the other wants')
  line.isDown = true
  for (let n = 0; n < 5; n++) {
    await clock.advance(20_000)
    await wait(5)
  }
  t.notOk(one.isWanted('b'))
  line.isDown = false
  ends[0].reconnect()
  await until(() => one.isWanted('b') && other.isWanted('a'), 'both know what the other wants')
  t.ok(one.isWanted('b') && other.isWanted('a'))
  for (let n = 0; n < 10; n++) {
    await clock.advance(20_000)
    await wait(5)
  }
  t.ok(one.isWanted('b') && other.isWanted('a'), 'signs of life keep it known')
  await one.close()
  await other.close()
})

test('that the clock of the machine is set makes no process silent', async t => {
  const line = new Line()
  const clock = testClock()
  const one = createRelay({ signals: line.signals(), log, clock })
  const other = createRelay({ signals: line.signals(), log, clock })
  other.watch('b')
  await until(() => one.isWanted('b'), 'it knows what the other wants')
  line.isDown = true
  clock.set(3_600_000)
  await clock.advance(20_000)
  t.ok(one.isWanted('b'))
  await one.close()
  await other.close()
})

test('two processes say what they want once each when they meet, and nothing again while both live', async t => {
  const line = new Line()
  const clock = testClock()
  const one = createRelay({ signals: line.signals(), log, clock })
  await until(() => line.sent.length === 1, 'the first has said hello')
  one.watch('a')
  const other = createRelay({ signals: line.signals(), log, clock })
  await until(() => line.sent.length === 4, 'both have said what they want')
  await clock.advance(60_000)
  await until(() => line.sent.length === 10, 'three signs of life of each')
  t.same(line.kinds(), ['hello', 'hello', 'wants', 'wants', ...Array.from({ length: 6 }, () => 'alive')])
  await one.close()
  await until(() => line.sent.length === 11, 'it says good-bye')
  await other.close()
  t.equal(line.sent.length, 11, 'who is alone says no good-bye')
})

test('a process that alone did not hear another for long learns anew what that one wants', async t => {
  const line = new Line()
  const clock = testClock()
  const deaf = createRelay({ signals: line.signals(), log, clock })
  const other = createRelay({ signals: line.signals(), log, clock })
  deaf.watch('of the deaf')
  other.watch('of the other')
  await until(() => deaf.isWanted('of the other') && other.isWanted('of the deaf'), 'both know each other')
  const from = JSON.parse(line.sent.find(text => text.includes('of the other')) ?? '').from
  line.loses = data => JSON.parse(data).from === from
  for (let seconds = 0; seconds < 100; seconds += 20) {
    const lost = line.lost.length
    await clock.advance(20_000)
    await until(() => line.lost.length > lost, 'a sign of life is lost')
  }
  t.equal(deaf.isWanted('of the other'), false, 'it has been silent for too long')
  t.equal(other.isWanted('of the deaf'), true, 'the other has heard it all the time')
  line.loses = () => false
  await clock.advance(20_000)
  await until(() => deaf.isWanted('of the other'), 'the other says it again')
  await deaf.close()
  await other.close()
})

test('two processes on PostgreSQL: messages cross, and again after the connection was cut', async t => {
  const database = await createDatabase()
  t.teardown(() => database.drop())
  const open = async () => {
    const postgres = await openPostgres({ url: database.url, log, maxConnections: 2 })
    const listener = await openListener({ postgres, log })
    const kit = await startHub({ relay: createRelay({ signals: listener, log }) })
    kit.hub.addChannels('demo', records)
    t.teardown(async () => {
      await kit.close()
      await listener.close()
      await postgres.close()
    })
    return kit
  }
  const a = await open()
  const b = await open()
  const there = await b.connect()
  await there.subscribe('platform')
  await until(() => a.hub.hasSubscribers('platform'), 'the subscription of the other is known')
  const text = 'x'.repeat(20_000)
  for (let n = 0; n < 500; n++) a.hub.publish('platform', 'log', n)
  a.hub.publish('platform', 'log', text)
  await there.received(501)
  t.same(there.data, [...Array.from({ length: 500 }, (_, n) => n), text])
  // Of equal payloads of one statement PostgreSQL would deliver one.
  const equal = 'x'.repeat(1000)
  for (let n = 0; n < 500; n++) a.hub.publish('platform', 'log', equal)
  await there.received(1001)
  t.same(new Set(there.data.slice(501)), new Set([equal]))
  t.equal(there.data.length, 1001)

  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  await admin.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()'
  )
  await admin.end()
  await there.subscribe('second')
  await until(() => a.hub.hasSubscribers('second'), 'the subscription of the other is known')
  t.ok(a.hub.hasSubscribers('second'), 'a subscription made during the outage is known after it')
  a.hub.publish('second', 'log', 'again')
  await there.received(1002)
  t.equal(there.data.at(-1), 'again')
})
