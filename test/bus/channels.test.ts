import { setTimeout as wait } from 'node:timers/promises'
import { type ChannelContext, isProblem, Type } from 'busbar/sdk'
import { until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { channel, knownId, startHub } from './hub-kit.js'

const name = `metrics:${knownId}`

function sourceOf(events: string[]) {
  const contexts: ChannelContext[] = []
  const source = (context: ChannelContext) => {
    contexts.push(context)
    events.push(`start ${context.id?.slice(0, 4)}`)
    context.signal.addEventListener('abort', () => events.push('stop'))
  }
  return { contexts, source }
}

test('a source runs from the first subscriber to the last, and again', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  const events: string[] = []
  const { contexts, source } = sourceOf(events)
  kit.hub.addChannels('demo', [channel('metrics:{applicationId}', { source })])
  const [one, two] = [await kit.connect(), await kit.connect()]
  t.same(events, [])
  await one.subscribe(name)
  await two.subscribe(name)
  t.same(events, ['start 0b0e'])
  contexts[0]?.publish('log', 1)
  await one.received(1)
  await two.received(1)
  await one.send({ action: 'unsubscribe', channel: name })
  t.same(events, ['start 0b0e'])
  two.socket.close()
  await two.closed
  await until(() => events.length === 2, 'the source is stopped')
  t.same(events, ['start 0b0e', 'stop'])
  await one.subscribe(name)
  t.same(events, ['start 0b0e', 'stop', 'start 0b0e'])
  contexts[0]?.publish('log', 'from the grave')
  contexts[1]?.publish('log', 2)
  await one.received(2)
  t.same(one.data, [1, 2])
})

test('a source that fails is logged, and the channel goes on', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [
    channel('sync', {
      source: () => {
        throw new Error('at once')
      }
    }),
    channel('async', {
      source: async () => {
        await wait(1)
        throw new Error('later')
      }
    }),
    channel('aborted', {
      source: async ({ signal }) => {
        await wait(10_000, undefined, { signal })
      }
    })
  ])
  const client = await kit.connect()
  await client.subscribe('sync', 'async', 'aborted')
  await until(() => kit.logged.length === 2, 'both failures are logged')
  await client.send({ action: 'unsubscribe', channel: 'aborted' })
  t.same(
    kit.logged.map(line => [line.channel, line.plugin]),
    [
      ['sync', 'demo'],
      ['async', 'demo']
    ]
  )
  kit.hub.publish('sync', 'log', 1)
  await client.received(1)
  t.same(client.data, [1])
})

test('the last event of a channel ends its source', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  const events: string[] = []
  const { contexts, source } = sourceOf(events)
  kit.hub.addChannels('demo', [channel('metrics:{applicationId}', { source, endsWith: 'done' })])
  const client = await kit.connect()
  await client.subscribe(name)
  contexts[0]?.publish('done', null)
  t.same(events, ['start 0b0e', 'stop'])
  await client.received(1)
  t.equal(client.frames[0]?.event, 'done')
})

test('turning a plugin off stops its sources and puts its subscriptions to sleep until it is back', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  const events: string[] = []
  const { source } = sourceOf(events)
  const records = [channel('metrics:{applicationId}', { source })]
  kit.hub.addChannels('demo', records)
  kit.hub.addChannels('other', [channel('platform', { plugin: 'other' })])
  const client = await kit.connect()
  await client.subscribe(name, 'platform')
  kit.hub.removeChannels('demo')
  t.same(events, ['start 0b0e', 'stop'])
  t.notOk(kit.hub.hasSubscribers(name))
  kit.hub.publish(name, 'log', 'asleep')
  kit.hub.publish('platform', 'log', 'awake')
  const late = await kit.connect()
  await late.subscribe(name)
  t.equal(late.frames[0]?.event, 'error')
  kit.hub.addChannels('demo', records)
  t.same(events, ['start 0b0e', 'stop', 'start 0b0e'])
  kit.hub.publish(name, 'log', 'back')
  await client.received(2)
  t.same(client.data, ['awake', 'back'])
})

test('a reload hands the channels over to the new run', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  const events: string[] = []
  const first = sourceOf(events)
  const second = sourceOf(events)
  kit.hub.addChannels('demo', [channel('metrics:{applicationId}', { source: first.source }), channel('gone')])
  const client = await kit.connect()
  await client.subscribe(name, 'gone')
  kit.hub.addChannels('demo', [channel('metrics:{applicationId}', { source: second.source })])
  t.same(events, ['start 0b0e', 'stop', 'start 0b0e'])
  second.contexts[0]?.publish('log', 1)
  t.notOk(kit.hub.hasSubscribers('gone'))
  await client.received(1)
  t.same(client.data, [1])
})

test('a plugin that is reloaded while access is being decided is asked again', async t => {
  const asked: string[] = []
  let answer: (isGranted: boolean) => void = () => {}
  const kit = await startHub({
    authorize: record =>
      new Promise(resolve => {
        asked.push(Object.keys(record.events).join())
        answer = resolve
      })
  })
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [channel('platform', { events: { old: Type.Any() } })])
  const client = await kit.connect()
  await client.subscribe('platform')
  kit.hub.addChannels('demo', [channel('platform', { events: { new: Type.Any() } })])
  answer(true)
  await until(() => asked.length === 2, 'the new channel is asked')
  t.same(asked, ['old', 'new'])
  kit.hub.removeChannels('demo')
  answer(true)
  await client.received(1)
  t.equal(client.frames[0]?.event, 'error')
})

test('a name that another plugin has is refused, naming both, and nothing changes', async t => {
  const kit = await startHub()
  t.teardown(() => kit.close())
  kit.hub.addChannels('demo', [channel('platform')])
  try {
    kit.hub.addChannels('other', [
      channel('fresh', { plugin: 'other' }),
      channel('platform', { plugin: 'other' })
    ])
    t.fail('accepted')
  } catch (error) {
    t.ok(isProblem(error) && error.code === 'E_BUS_CHANNEL_TAKEN')
    t.match(error, { message: /other.*platform.*demo/ })
  }
  const client = await kit.connect()
  await client.subscribe('fresh')
  t.equal(client.frames[0]?.event, 'error')
})
