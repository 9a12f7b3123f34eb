import { setTimeout as wait } from 'node:timers/promises'
import { until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { createRelay } from '../../core/bus/relay.js'
import { createLog } from '../../core/log/log.js'
import { createRedactor } from '../../core/log/redactor.js'
import { channel, knownId, startHub } from './hub-kit.js'
import { type End, Line } from './line.js'

const log = createLog({ level: 'silent', format: 'json', redactor: createRedactor() })
const name = `state:${knownId}`

/** A hub whose channel tells what `stored` holds by then. */
async function hubOn(t: Test, signals: End, stored: { value: string }, authorize = async () => true) {
  const kit = await startHub({ relay: createRelay({ signals, log }), authorize })
  const reads: Array<readonly string[]> = []
  const parts = { beforeAnswer: async () => {} }
  const declare = (): void =>
    kit.hub.addChannels('demo', [
      channel('state:{id}', {
        current: {
          event: 'done',
          read: async ids => {
            reads.push(ids)
            const { value } = stored
            await parts.beforeAnswer()
            return new Map(ids.map(id => [id, value]))
          }
        }
      }),
      channel('other:{id}')
    ])
  declare()
  t.teardown(() => kit.close())
  const client = await kit.connect()
  await client.subscribe(name, `other:${knownId}`)
  return { ...kit, client, reads, parts, declare }
}

async function twoHubs(t: Test) {
  const line = new Line()
  const ends = [line.signals(), line.signals()] as const
  const stored = { value: 'first' }
  const here = await hubOn(t, ends[0], stored)
  const there = await hubOn(t, ends[1], stored)
  await until(() => line.kinds().filter(kind => kind === 'wants').length >= 2, 'both know of each other')
  return { line, ends, stored, here, there }
}

test('who was cut off from the others is told how things are once they are heard again', async t => {
  const { ends, stored, here, there } = await twoHubs(t)
  ends[1].isCut = true
  stored.value = 'second'
  here.hub.publish(name, 'done', 'second')
  here.hub.publish(`other:${knownId}`, 'log', 'lost')
  await here.client.received(2)
  await wait(20)
  t.same(there.client.data, [])
  ends[1].isCut = false
  ends[1].reconnect()
  await there.client.received(1)
  await there.client.settled()
  t.same(there.client.frames, [{ channel: name, event: 'done', data: 'second' }])
  t.same(there.reads, [[knownId]], 'one question')
})

test('messages that did not leave make the others look', async t => {
  const { line, stored, here, there } = await twoHubs(t)
  line.isDown = true
  stored.value = 'second'
  here.hub.publish(name, 'done', 'second')
  await until(() => line.lost.length > 0, 'the message got nowhere')
  line.isDown = false
  here.hub.publish(`other:${knownId}`, 'log', 'back')
  await there.client.received(2)
  t.same(there.client.data, ['back', 'second'])
})

test('a state that was too much at once makes the others look', async t => {
  const { stored, here, there } = await twoHubs(t)
  stored.value = 's'.repeat(20_000)
  const text = 'x'.repeat(10_000)
  // Until there is no room for the state either.
  for (let n = 0; n < 600; n++) here.hub.publish(`other:${knownId}`, 'log', text)
  here.hub.publish(name, 'done', stored.value)
  await until(() => there.client.data.includes(stored.value), 'the state')
  t.same(there.reads, [[knownId]], 'it was read')
})

test('a state reaches the other processes before it is known that somebody subscribes there', async t => {
  const { line, here, there } = await twoHubs(t)
  await there.client.send({ action: 'unsubscribe', channel: name })
  await here.client.send({ action: 'unsubscribe', channel: name })
  await until(() => !here.hub.hasSubscribers(name), 'nobody has subscribed')
  line.loses = data => data.includes('"more"')
  await there.client.subscribe(name)
  here.hub.publish(name, 'log', 'not of the state')
  here.hub.publish(name, 'done', 'second')
  await there.client.received(1)
  t.same(there.client.data, ['second'])
})

test('what two processes say of one thing may cross: the state is read where it does', async t => {
  const { stored, here, there } = await twoHubs(t)
  stored.value = 'newest'
  there.hub.publish(name, 'done', 'newest')
  here.hub.publish(name, 'done', 'older')
  await there.client.received(3)
  await there.client.settled()
  t.same(there.client.data, ['newest', 'older', 'newest'])
  await until(() => here.client.data.at(-1) === 'newest', 'the other one ends with it too')
  for (const kit of [here, there]) await kit.clock.advance(1_000)
  const before = there.reads.length
  here.hub.publish(name, 'done', 'last')
  stored.value = 'last'
  await until(() => there.client.data.at(-1) === 'last', 'the last one')
  await there.client.settled()
  t.ok(there.reads.length <= before + 1)
  t.equal(there.client.data.filter(data => data === 'last').length, 1, 'what was told is not told again')
})

test('who has lost access meanwhile is not told how things are', async t => {
  const signals = new Line().signals()
  let decide = (): void => {}
  const decided = new Promise<void>(resolve => {
    decide = resolve
  })
  let isAskedAgain = false
  const kit = await hubOn(t, signals, { value: 'second' }, async () => {
    if (isAskedAgain) await decided
    return !isAskedAgain
  })
  isAskedAgain = true
  // In this order, as both hear of the database at once.
  kit.hub.recheck({ kind: 'all' })
  signals.reconnect()
  await kit.client.settled()
  t.same(kit.reads, [], 'nothing is read before it is known who may hear it')
  decide()
  await until(() => !kit.hub.hasSubscribers(name), 'the end of the subscription')
  await kit.client.settled()
  t.notOk(kit.client.data.includes('second'))
})

test('a plugin that does not say how things are holds up no other', async t => {
  const { ends, there } = await twoHubs(t)
  const slow = `slow:${knownId}`
  there.hub.addChannels('slow', [
    channel('slow:{id}', {
      plugin: 'slow',
      current: { event: 'done', read: async () => await new Promise<never>(() => {}) }
    })
  ])
  await there.client.subscribe(slow)
  ends[1].reconnect()
  await there.client.received(1)
  await there.clock.advance(1_000)
  await there.client.send({ action: 'unsubscribe', channel: name })
  await there.client.subscribe(name)
  ends[1].reconnect()
  await there.client.received(2)
  t.same(there.client.data, ['first', 'first'])
})

test('what is told while the state is read is not followed by what was read before it', async t => {
  const { ends, stored, here, there } = await twoHubs(t)
  let isRead = false
  there.parts.beforeAnswer = async () => {
    if (isRead) return
    isRead = true
    stored.value = 'newer'
    here.hub.publish(name, 'done', 'newer')
    await there.client.received(1)
  }
  ends[1].reconnect()
  await until(() => there.reads.length === 2, 'a second look')
  await there.client.settled()
  t.same(there.client.data, ['newer'])
})

test('a state that cannot be read is read later, and the log says so once', async t => {
  const { ends, there } = await twoHubs(t)
  let failures = 0
  there.parts.beforeAnswer = async () => {
    if (++failures <= 3) throw new Error('no database')
  }
  ends[1].reconnect()
  for (const count of [1, 2, 3, 4]) {
    await until(() => there.reads.length >= count, `look ${count}`)
    await there.client.settled()
    await there.clock.advance(30_000)
  }
  await there.client.received(1)
  t.same(there.client.data, ['first'])
  t.same(
    there.logged.filter(({ level }) => level === 'warn').map(({ plugin }) => plugin),
    ['demo']
  )
})

test('who stayed subscribed while the plugin was off is told how things are when it is back', async t => {
  const { stored, here } = await twoHubs(t)
  here.hub.removeChannels('demo')
  stored.value = 'second'
  here.hub.publish(name, 'done', 'second')
  await here.client.settled()
  t.same(here.client.data, [])
  here.declare()
  await here.client.received(1)
  t.same(here.client.data, ['second'])
  here.declare()
  await here.client.settled()
  t.same(here.client.data, ['second'], 'another declaration of what is on has missed nothing')
})
