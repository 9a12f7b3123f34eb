import { type Log, type Tx, Type } from 'busbar/sdk'
import { test } from 'tap'
import { type ChannelRecord, ChannelTable } from '../../core/bus/channel-table.js'
import { longestClientFrame, readClientFrame, serverFrameText } from '../../core/bus/client-frame.js'
import { FrameBudget } from '../../core/bus/frame-budget.js'
import type { Hub } from '../../core/bus/hub.js'
import { MessageEncoder } from '../../core/bus/message-encoder.js'
import { pluginBus } from '../../core/bus/plugin-bus.js'
import { ProjectTopics } from '../../core/bus/project-topics.js'
import { frameBytes, messagesFrame, type Piece, partsOf } from '../../core/bus/relay-frame.js'
import { collect, RelayPeers } from '../../core/bus/relay-peers.js'
import { inSlices } from '../../core/bus/slices.js'
import { Topic } from '../../core/bus/topic.js'
import type { Signals } from '../../core/database/listener.js'
import { currentPlugin } from '../../core/frames/frames.js'
import { until } from '../../sdk/testing/until.js'

/** Keeps what is logged as an error. */
function errorsOf(): { readonly log: Log; readonly errors: string[] } {
  const errors: string[] = []
  const log = { error: (_fields: unknown, message: string) => errors.push(message) } as unknown as Log
  return { log, errors }
}

const channel = (fields: Partial<ChannelRecord> = {}): ChannelRecord => ({
  plugin: 'apps',
  name: 'app:{id}',
  prefix: 'app:',
  param: 'id',
  access: { kind: 'public', reason: 'a test' } as unknown as ChannelRecord['access'],
  summary: 'A test',
  events: { changed: Type.Any() },
  ...fields
})

function busOf(builtIn: boolean) {
  const told: unknown[] = []
  const listeners = new Map<string, (data: string) => void>()
  const hub = {
    publish: (...args: unknown[]) => told.push(args),
    hasSubscribers: (name: string) => name === 'heard'
  } as unknown as Hub
  const signals = {
    signal: async (...args: unknown[]) => void told.push(args),
    onSignal: (topic: string, listener: (data: string) => void) => {
      listeners.set(topic, listener)
      return () => listeners.delete(topic)
    }
  } as unknown as Signals
  return { bus: pluginBus({ id: 'apps', builtIn, hub, signals }), told, listeners }
}

test('a third-party plugin publishes on its own channels and on no other', t => {
  const { bus, told } = busOf(false)
  bus.publish('x:apps:one', 'changed', 1)
  t.same(told, [['x:apps:one', 'changed', 1]])
  t.throws(() => bus.publish('x:app:one', 'changed', 1), /its channels begin with "x:apps:"/)
  t.throws(() => bus.publish('apps:one', 'changed', 1), /publishes on "apps:one"/)
  t.equal(told.length, 1, 'what is refused goes to nobody')
  t.end()
})

test('a built-in plugin publishes on every channel', t => {
  const { bus, told } = busOf(true)
  bus.publish('apps:one', 'changed', 2)
  bus.publish('x:apps:one', 'changed', 3)
  t.same(told, [
    ['apps:one', 'changed', 2],
    ['x:apps:one', 'changed', 3]
  ])
  t.equal(bus.hasSubscribers('heard'), true)
  t.equal(bus.hasSubscribers('other'), false)
  t.end()
})

test('a signal of a plugin carries its name, and is heard in its frame', async t => {
  const { bus, told, listeners } = busOf(false)
  const tx = {} as Tx
  await bus.signal('forget', 'one', tx)
  t.same(told, [['apps:forget', 'one', {}]])
  t.equal((told[0] as unknown[])[2], tx, 'in the transaction of the writer')
  const heard: unknown[] = []
  const stop = bus.onSignal('forget', data => heard.push([data, currentPlugin()]))
  listeners.get('apps:forget')?.('one')
  t.same(heard, [['one', 'apps']])
  stop()
  t.equal(listeners.size, 0)
})

const topicNamed = (name: string, log: Log = errorsOf().log): Topic =>
  new Topic(name, undefined, () => {}, log)

test('topics are found by the project they lie in, wherever they were before', t => {
  const projects = new ProjectTopics()
  const [one, two] = [topicNamed('one'), topicNamed('two')]
  projects.place(one, 'p')
  projects.place(two, 'p')
  t.same(projects.within('p'), [one, two])
  projects.place(one, 'p')
  t.same(projects.within('p'), [one, two], 'the order stays: nothing was done')
  projects.place(one, 'q')
  t.same(projects.within('p'), [two], 'in one project at a time')
  t.same(projects.within('q'), [one])
  t.equal(one.project, 'q')
  projects.place(one, undefined)
  t.same(projects.within('q'), [])
  t.equal(one.project, undefined)
  projects.remove(two)
  projects.remove(two)
  t.same(projects.within('p'), [])
  t.equal(two.project, undefined)
  projects.place(two, 'p')
  t.same(projects.within('p'), [two], 'and may come back')
  t.end()
})

test('work in slices lets the event loop turn, and ends with its last step', async t => {
  let steps = 0
  let turns = 0
  const count = setInterval(() => turns++, 0).unref()
  t.teardown(() => clearInterval(count))
  function* work(): Generator<void> {
    for (; steps < 4; steps++) {
      const end = performance.now() + 6
      while (performance.now() < end);
      yield
    }
  }
  await inSlices(work())
  t.equal(steps, 4)
  t.ok(turns >= 2, `the loop turned ${turns} times`)
})

test('short work in slices is done at once', async t => {
  let steps = 0
  function* work(): Generator<void> {
    for (; steps < 3; steps++) yield
  }
  const done = inSlices(work())
  t.equal(steps, 3, 'before anything else has a turn')
  await done
})

test('an error of work in slices is that of the whole', async t => {
  await t.rejects(
    inSlices(
      (function* () {
        yield
        throw new Error('the second step')
      })()
    ),
    { message: 'the second step' }
  )
})

test('a process is known from what it says until it says good-bye or nothing for 70 seconds', t => {
  const peers = new RelayPeers()
  t.equal(peers.isEmpty, true)
  const { peer, isNew } = peers.hear('a', 1000)
  t.equal(isNew, true)
  t.equal(peers.isEmpty, false)
  peer.channels.add('one')
  t.equal(peers.isWanted('one'), true)
  t.equal(peers.isWanted('two'), false)
  const again = peers.hear('a', 2000)
  t.equal(again.isNew, false)
  t.equal(again.peer, peer, 'with what it wanted')
  peers.forgetLost(72_000)
  t.equal(peers.isWanted('one'), true, 'after 70 seconds it is still there')
  peers.forgetLost(72_001)
  t.equal(peers.isEmpty, true)
  t.equal(peers.isWanted('one'), false)
  peers.hear('a', 1)
  peers.hear('b', 1)
  peers.forget('a')
  t.equal(peers.isEmpty, false)
  peers.forget('b')
  t.equal(peers.isEmpty, true)
  t.end()
})

const framesOf = (text: string, of: number): Piece[] =>
  partsOf('a', text, of).map(part => JSON.parse(part) as Piece)

test('a frame goes as it is up to 7500 bytes, and in pieces beyond', t => {
  const fits = 'x'.repeat(frameBytes)
  t.same(partsOf('a', fits, 1), [fits])
  const pieces = framesOf('é'.repeat(frameBytes), 7)
  t.same(
    pieces.map(({ of, index, count }) => ({ of, index, count })),
    [0, 1, 2].map(index => ({ of: 7, index, count: 3 }))
  )
  for (const part of partsOf('a', 'é'.repeat(frameBytes), 7)) t.ok(Buffer.byteLength(part) <= frameBytes)
  const { peer } = new RelayPeers().hear('a', 0)
  t.same(
    pieces.map(piece => collect(peer, piece)),
    [undefined, undefined, 'é'.repeat(frameBytes)],
    'characters that a border cuts are whole again'
  )
  t.same(
    pieces.map(piece => collect(peer, { ...piece, of: 8 })),
    [undefined, undefined, 'é'.repeat(frameBytes)],
    'the next one too'
  )
  t.equal(
    messagesFrame('a', 3, ['["c","e",1]', '["c","e",2]']),
    '{"kind":"messages","from":"a","number":3,"messages":[["c","e",1],["c","e",2]]}'
  )
  t.end()
})

test('pieces of two frames never make one, and one that is missing costs its own frame only', t => {
  const { peer } = new RelayPeers().hear('a', 0)
  const [first, second, third] = framesOf('x'.repeat(3 * 5400), 1) as [Piece, Piece, Piece]
  const next = framesOf('y'.repeat(3 * 5400), 2) as [Piece, Piece, Piece]
  t.equal(collect(peer, second), undefined, 'the beginning is missing')
  t.equal(collect(peer, third), undefined)
  t.equal(collect(peer, first), undefined)
  t.equal(collect(peer, third), undefined, 'the middle is missing')
  t.equal(collect(peer, next[1]), undefined)
  t.equal(collect(peer, next[0]), undefined)
  t.equal(collect(peer, next[1]), undefined)
  t.equal(collect(peer, next[2]), 'y'.repeat(3 * 5400))
  t.end()
})

test('a client frame is a subscription, malformed, or asks for nothing', t => {
  t.same(readClientFrame('{"action":"subscribe","channel":"a"}'), { kind: 'subscribe', channel: 'a' })
  t.same(readClientFrame('{"action":"unsubscribe","channel":"a"}'), { kind: 'unsubscribe', channel: 'a' })
  t.same(readClientFrame('{"action"'), { kind: 'malformed' })
  for (const text of [
    'null',
    '1',
    '"subscribe"',
    '{}',
    '{"action":"subscribe"}',
    '{"channel":"a"}',
    '{"action":"subscribe","channel":""}',
    '{"action":"subscribe","channel":1}',
    '{"action":"other","channel":"a"}'
  ])
    t.same(readClientFrame(text), { kind: 'ignored' }, text)
  t.equal(longestClientFrame, 4096)
  t.equal(serverFrameText('a"', 'e', '{"x":1}'), '{"channel":"a\\"","event":"e","data":{"x":1}}')
  t.end()
})

test('two thousand frames are read at once, then fifty a second, and what came beyond is waited for', t => {
  const budget = new FrameBudget(0)
  for (let n = 0; n < 1999; n++) t.equal(budget.spend(0), 0)
  t.equal(budget.spend(0), 20, 'the last one that has room')
  t.equal(budget.spend(0), 40, 'one that came with it')
  t.equal(budget.spend(20), 40, 'one more while it waits')
  t.equal(budget.spend(60), 20, 'what was waited for is there, and is used')
  for (let n = 0; n < 49; n++) t.equal(budget.spend(1_060), 0)
  t.equal(budget.spend(1_060), 20, 'a second gives fifty')
  t.equal(budget.spend(10_000_000), 0)
  for (let n = 0; n < 1998; n++) t.equal(budget.spend(10_000_000), 0)
  t.equal(budget.spend(10_000_000), 20, 'there is never more than at first')
  t.equal(budget.spend(9_000_000), 40, 'a clock that is set back gives nothing and takes nothing')
  t.end()
})

test('a message is encoded when its channel declares the event, and what cannot be is logged', t => {
  const { log, errors } = errorsOf()
  const channels = new ChannelTable()
  channels.replace('apps', [channel({ name: 'apps', prefix: 'apps', param: null })])
  const plain = new MessageEncoder(channels, log, undefined)
  t.equal(plain.encode('apps', 'changed', { a: 'secret' }), '{"a":"secret"}')
  t.equal(plain.encode('apps', 'changed', undefined), 'null')
  t.equal(plain.encode('apps', 'changed', false), 'false', 'false is a value')
  t.equal(
    plain.encode('apps', 'changed', () => {}),
    'null',
    'what JSON does not know'
  )
  const cleaning = new MessageEncoder(channels, log, { cleanJson: text => text.replace('secret', '***') })
  t.equal(cleaning.encode('apps', 'changed', { a: 'secret' }), '{"a":"***"}')
  t.same(errors, [])
  t.equal(plain.encode('other', 'changed', 1), undefined)
  t.equal(plain.encode('apps', 'other', 1), undefined)
  t.equal(plain.encode('apps', 'changed', 1n), undefined)
  t.equal(plain.encode('apps', 'changed', 'ü'.repeat(524_287))?.length, 524_289, '1 MiB')
  t.equal(plain.encode('apps', 'changed', `${'ü'.repeat(524_287)}x`), undefined)
  t.same(errors, [
    'a message was published on an undeclared channel',
    'a channel was given an event that it does not declare',
    'a message is not JSON',
    'a message is too long, and nobody was told it'
  ])
  t.end()
})

test('a channel is found by its whole name, or by what stands before an id', t => {
  const id = '8c9e6679-7425-40de-944b-e07fc1f90ae7'
  const channels = new ChannelTable()
  const [all, one] = [channel({ name: 'app:all', prefix: 'app:all', param: null }), channel()]
  channels.replace('apps', [all, one])
  t.same(channels.find('app:all'), { record: all, id: undefined })
  t.same(channels.find(`app:${id}`), { record: one, id })
  for (const name of ['app:', `app:${id.toUpperCase()}`, `app:${id}0`, `apps:${id}`, `app:all${id}`, id])
    t.equal(channels.find(name), undefined, name)
  t.throws(() => channels.replace('other', [channel({ plugin: 'other' })]), {
    code: 'E_BUS_CHANNEL_TAKEN',
    message: /plugin other cannot declare channel app:\{id\}: plugin apps has it/
  })
  t.equal(channels.find(`app:${id}`)?.record, one, 'a conflict changes nothing')
  const anew = channel({ events: { gone: Type.Any() } })
  channels.replace('apps', [anew])
  t.equal(channels.find('app:all'), undefined, 'the declarations before do not count')
  t.equal(channels.find(`app:${id}`)?.record, anew)
  channels.remove('other')
  t.equal(channels.find(`app:${id}`)?.record, anew)
  channels.remove('apps')
  t.equal(channels.find(`app:${id}`), undefined)
  t.end()
})

test('a source runs while its channel has a declaration, and only the running one is heard', async t => {
  const { log, errors } = errorsOf()
  const published: unknown[] = []
  const topic = new Topic('app:1', '1', (event, data) => published.push([event, data]), log)
  const started: { signal: AbortSignal; publish: (event: string, data: unknown) => void; id?: string }[] = []
  const source: ChannelRecord['source'] = context => void started.push(context as (typeof started)[number])
  const record = channel({ source })
  topic.setRecord(record)
  topic.setRecord(record)
  t.equal(started.length, 1, 'the same declaration starts nothing anew')
  t.equal(started[0]?.id, '1')
  started[0]?.publish('changed', 1)
  topic.setRecord(channel({ source }))
  t.equal(started[0]?.signal.aborted, true)
  t.match(started[0]?.signal.reason, { message: /app:1 has no subscribers/ })
  started[0]?.publish('changed', 2)
  started[1]?.publish('changed', 3)
  t.same(published, [
    ['changed', 1],
    ['changed', 3]
  ])
  topic.setRecord(undefined)
  t.equal(started[1]?.signal.aborted, true)
  t.equal(topic.record, undefined)
  topic.setRecord(channel({ source: async () => await Promise.reject(new Error('broken')) }))
  await until(() => errors.length > 0, 'a failure is logged')
  t.same(errors, ['the source of a channel failed'])
  topic.setRecord(
    channel({
      source: async ({ signal }) =>
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        )
    })
  )
  topic.setRecord(undefined)
  await new Promise(resolve => setImmediate(resolve))
  t.equal(errors.length, 1, 'what an aborted source throws is its abort')
})

test('the list of readers changes by being made anew', t => {
  const topic = topicNamed('one')
  const [ann, bob] = [{ id: 'ann' }, { id: 'bob' }] as unknown as [never, never]
  t.equal(topic.isEmpty, true)
  topic.add(ann)
  const before = topic.readers
  topic.add(bob)
  t.same(before, [ann])
  t.same(topic.readers, [ann, bob])
  topic.delete(ann)
  t.same(topic.readers, [bob])
  t.equal(topic.has(ann), false)
  t.equal(topic.has(bob), true)
  t.equal(topic.isEmpty, false)
  topic.delete(bob)
  t.equal(topic.isEmpty, true)
  t.end()
})
