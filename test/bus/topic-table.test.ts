import { allow, type ChannelContext, type Log, type SignedInCaller, Turns, Type } from 'busbar/sdk'
import { test } from 'tap'
import { type Authority, ChannelAccess, type Verdict } from '../../core/bus/channel-access.js'
import { type ChannelRecord, ChannelTable } from '../../core/bus/channel-table.js'
import type { Connection } from '../../core/bus/connection.js'
import type { ConnectionTable } from '../../core/bus/connection-table.js'
import { MessageEncoder } from '../../core/bus/message-encoder.js'
import { recheck } from '../../core/bus/recheck.js'
import type { Relay } from '../../core/bus/relay.js'
import type { Topic } from '../../core/bus/topic.js'
import { TopicTable } from '../../core/bus/topic-table.js'
import { until } from '../../sdk/testing/until.js'

const idOf = (n: number): string => `${String(n).padStart(8, '0')}-1c3d-4a5b-8c7d-9e0f1a2b3c4d`
const log = { warn: () => {}, error: () => {} } as unknown as Log
const access = allow.token('read', { project: 'none' })

const record = (more: Partial<ChannelRecord> = {}): ChannelRecord => ({
  plugin: 'demo',
  name: 'logs:{id}',
  prefix: 'logs:',
  param: 'id',
  access,
  summary: 'A test',
  events: { log: Type.Any(), done: Type.Any() },
  endsWith: 'done',
  ...more
})
const fixed = record({ name: 'platform', prefix: 'platform', param: null })

interface Reader {
  readonly connection: Connection
  readonly heard: string[]
  readonly lost: Array<[name: string, verdict: Verdict | undefined]>
}

/** What the table and a round know of a socket. */
function reader(user = 'ann', caller?: SignedInCaller): Reader {
  const heard: string[] = []
  const lost: Array<[string, Verdict | undefined]> = []
  const connection = {
    caller: caller ?? { kind: 'session', sessionId: user, user: { id: user } },
    topics: new Map(),
    outbox: {
      send: (parcels: ReadonlyArray<{ readonly frames: readonly Buffer[] }>) => {
        for (const { frames } of parcels)
          for (const frame of frames) heard.push(frame.subarray(frame.indexOf('{')).toString())
      }
    },
    lose: (topic: Topic, verdict: Verdict | undefined) => void lost.push([topic.name, verdict])
  }
  return { connection: connection as unknown as Connection, heard, lost }
}

function tableOf(...records: readonly ChannelRecord[]) {
  const channels = new ChannelTable()
  channels.replace('demo', records)
  const told: string[] = []
  const relay = {
    watch: (name: string) => told.push(`watch ${name}`),
    unwatch: (name: string) => told.push(`unwatch ${name}`)
  } as unknown as Relay
  const topics = new TopicTable(channels, new MessageEncoder(channels, log, undefined), relay, log, () => {})
  return { channels, topics, told }
}

const turn = async (): Promise<void> => {
  for (let n = 0; n < 5; n++) await new Promise(resolve => setImmediate(resolve))
}
const frame = (event: string, data: unknown): string =>
  JSON.stringify({ channel: 'platform', event, data: data ?? null })

test('other processes are told of the first subscriber of a channel and of the end of the last one', t => {
  const { topics, told } = tableOf(fixed)
  const [ann, bob] = [reader(), reader('bob')]
  t.equal(topics.isHeard('platform'), false)
  topics.join('platform', ann.connection, undefined)
  topics.join('platform', bob.connection, undefined)
  t.same(told.splice(0), ['watch platform'])
  t.equal(topics.isHeard('platform'), true)
  t.same([...ann.connection.topics.keys()], ['platform'])
  topics.leave('platform', ann.connection)
  topics.leave('platform', ann.connection)
  topics.leave('other', bob.connection)
  t.same(told, [], 'one is left')
  t.same([...ann.connection.topics.keys()], [])
  topics.leave('platform', bob.connection)
  t.same(told, ['unwatch platform'])
  t.equal(topics.isHeard('platform'), false)
  t.same(topics.list(), [])
  t.end()
})

test('a channel hears nothing while its plugin is off, and the same subscribers afterwards', async t => {
  const { channels, topics, told } = tableOf(fixed)
  const ann = reader()
  topics.join('platform', ann.connection, undefined)
  channels.remove('demo')
  topics.rebind()
  t.equal(topics.isHeard('platform'), false)
  topics.deliver('platform', 'log', '1')
  topics.deliver('platform', 'done', '2')
  await turn()
  t.same(ann.heard, [])
  channels.replace('demo', [fixed])
  topics.rebind()
  t.equal(topics.isHeard('platform'), true)
  topics.deliver('platform', 'log', '3')
  topics.deliver('nothing', 'log', '4')
  await turn()
  t.same(ann.heard, [frame('log', 3)])
  t.same(told, ['watch platform'], 'other processes need not know')
})

test('the last event of a channel reaches those who hear it, ends their subscriptions, and no other event does', async t => {
  const { topics, told } = tableOf(fixed)
  const [ann, late] = [reader(), reader('late')]
  topics.join('platform', ann.connection, 'p')
  topics.deliver('platform', 'log', '1')
  t.equal(topics.isHeard('platform'), true)
  topics.join('platform', late.connection, 'p')
  topics.deliver('platform', 'done', '2')
  t.equal(topics.isHeard('platform'), false)
  t.same([...ann.connection.topics.keys(), ...late.connection.topics.keys()], [])
  t.same(topics.within('p'), [])
  t.same(told, ['watch platform', 'unwatch platform'])
  topics.deliver('platform', 'log', '3')
  await turn()
  t.same(ann.heard, [frame('log', 1), frame('done', 2)])
  t.same(late.heard, [frame('done', 2)], 'who came later hears nothing of before')
})

test('who subscribes again in the turn in which a channel ended hears its end before what comes after it', async t => {
  const { topics } = tableOf(fixed)
  const ann = reader()
  topics.join('platform', ann.connection, undefined)
  topics.deliver('platform', 'done', '1')
  topics.join('platform', ann.connection, undefined)
  topics.deliver('platform', 'log', '2')
  topics.join('platform', reader('bob').connection, undefined)
  await turn()
  t.same(ann.heard, [frame('done', 1), frame('log', 2)])
})

test('a channel is found by its project while it is heard, until it is declared with other access', t => {
  const { channels, topics } = tableOf(record())
  const ann = reader()
  const name = `logs:${idOf(1)}`
  topics.join(name, ann.connection, 'p')
  const [topic] = topics.within('p')
  if (topic === undefined) throw new Error('it is in its project')
  t.same(topics.list(), [topic])
  channels.replace('demo', [record({ access: { ...access } })])
  topics.rebind()
  t.same(topics.within('p'), [topic], 'another declaration of the same access')
  channels.replace('demo', [record({ access: allow.token('deploy', { project: 'none' }) })])
  topics.rebind()
  t.same(topics.within('p'), [], 'other access may find another project')
  topics.place(topic, 'q')
  topics.rebind()
  t.same(topics.within('q'), [topic])
  channels.remove('demo')
  topics.rebind()
  t.same(topics.within('q'), [topic], 'its plugin is off')
  topics.leave(name, ann.connection)
  t.same(topics.within('q'), [])
  topics.place(topic, 'q')
  t.same(topics.within('q'), [], 'an answer that comes too late places nothing')
  topics.join(name, ann.connection, undefined)
  topics.place(topic, 'q')
  t.same(topics.within('q'), [], 'also when the channel is heard again')
  t.end()
})

test('the source of a channel publishes while somebody hears it', async t => {
  const begun: ChannelContext[] = []
  const source = (context: ChannelContext): void => void begun.push(context)
  const { channels, topics } = tableOf(record({ source }), { ...fixed, source })
  const ann = reader()
  topics.join('platform', ann.connection, undefined)
  topics.join('platform', reader('bob').connection, undefined)
  topics.join(`logs:${idOf(1)}`, ann.connection, undefined)
  t.same(
    begun.map(({ id }) => id),
    [undefined, idOf(1)],
    'one for each channel'
  )
  const [first, second] = begun
  first?.publish('log', 1)
  first?.publish('undeclared', 2)
  await turn()
  t.same(ann.heard.splice(0), [frame('log', 1)])
  topics.leave(`logs:${idOf(1)}`, ann.connection)
  t.equal(second?.signal.aborted, true)
  channels.replace('demo', [{ ...fixed, source }])
  topics.rebind()
  t.equal(first?.signal.aborted, true, 'a newer version of its plugin has a source of its own')
  t.equal(begun.length, 3)
  first?.publish('log', 3)
  begun[2]?.publish('log', 4)
  await turn()
  t.same(ann.heard.splice(0), [frame('log', 4)])
  topics.endSources()
  t.equal(begun[2]?.signal.aborted, true)
  begun[2]?.publish('log', 5)
  await turn()
  t.same(ann.heard, [])
})

/** A round of questions over channels, each of which has the readers that are given. */
function roundOf(given: ReadonlyArray<readonly [n: number, project: string | undefined, ...Reader[]]>) {
  const { channels, topics } = tableOf(record(), fixed)
  const all = [...new Set(given.flatMap(([, , ...readers]) => readers))]
  for (const [n, project, ...readers] of given)
    for (const { connection } of readers) topics.join(`logs:${idOf(n)}`, connection, project)
  return {
    channels,
    topics,
    round: async (change: Parameters<typeof recheck>[0], authority: Authority, turns = new Turns()) =>
      await recheck(change, turns, {
        access: new ChannelAccess(channels, authority, log),
        topics,
        connections: {
          of: (user: string) =>
            all.map(({ connection }) => connection).filter(({ caller }) => caller.user.id === user)
        } as unknown as ConnectionTable
      })
  }
}

test('a round asks for what a change concerns: a project, a user, or everything', async t => {
  const [ann, bob] = [reader('ann'), reader('bob')]
  const { topics, round } = roundOf([
    [1, 'p', ann, bob],
    [2, 'p', ann],
    [3, 'q', ann],
    [4, undefined, bob]
  ])
  topics.join('platform', ann.connection, undefined)
  const asked: string[] = []
  const authority: Authority = {
    decide: async (_, id, { user }) => {
      asked.push(`${user.id} ${id?.slice(7, 8)}`)
      return { isGranted: true, project: 'r' }
    },
    decideIn: async (_, project, { user }) => {
      asked.push(`${user.id} in ${project}`)
      return true
    }
  }
  await round({ kind: 'project', id: 'p' }, authority)
  t.same(asked.splice(0), ['ann in p', 'bob in p'])
  await round({ kind: 'user', id: 'ann' }, authority)
  t.same(asked.splice(0), ['ann in p', 'ann in q'])
  t.same(topics.within('r'), [])
  await round({ kind: 'all' }, authority)
  t.same(asked.splice(0), ['ann in p', 'bob in p', 'ann in q', 'bob 4'])
  t.equal(topics.within('r').length, 1, 'where it lies is known now')
  t.same([...ann.lost, ...bob.lost], [], 'all is granted')
})

test('a round ends what is refused, or cannot be decided, and nothing else', async t => {
  const [ann, bob, cy] = [reader('ann'), reader('bob'), reader('cy')]
  const { round } = roundOf([[1, 'p', ann, bob, cy]])
  await round(
    { kind: 'project', id: 'p' },
    {
      decide: async () => ({ isGranted: true, project: 'p' }),
      decideIn: async (_, __, { user }) => {
        if (user.id === 'cy') throw new Error('no database')
        return user.id === 'ann'
      }
    }
  )
  t.same(ann.lost, [])
  t.same(bob.lost, [[`logs:${idOf(1)}`, { isGranted: false, project: 'p' }]])
  t.same(cy.lost, [[`logs:${idOf(1)}`, undefined]])
})

test('a round asks once for the sockets of one caller, and 256 questions at a time', async t => {
  const many = Array.from({ length: 300 }, (_, n) => reader(`user ${n}`))
  const twice = many.map(({ connection }) => reader('', connection.caller))
  const { round } = roundOf([[1, 'p', ...many, ...twice]])
  let asked = 0
  let open: () => void = () => {}
  const opened = new Promise<void>(resolve => {
    open = resolve
  })
  const done = round(
    { kind: 'project', id: 'p' },
    {
      decide: async () => await Promise.reject(new Error('where it lies is known')),
      decideIn: async () => {
        asked++
        await opened
        return false
      }
    }
  )
  await until(() => asked >= 256, 'a batch')
  await turn()
  t.equal(asked, 256)
  t.equal(many[0]?.lost.length, 0)
  open()
  await done
  t.equal(asked, 300)
  for (const { lost } of [...many, ...twice]) if (lost.length !== 1) t.fail('each is told once')
})

test('who has left before the question is asked is not asked for, and neither is what sleeps or has no id', async t => {
  const ann = reader('ann')
  const { channels, topics, round } = roundOf([[1, undefined, ann]])
  topics.join('platform', ann.connection, undefined)
  let asked = 0
  const authority: Authority = {
    decide: async () => {
      asked++
      return { isGranted: false, project: undefined }
    },
    decideIn: async () => false
  }
  channels.remove('demo')
  topics.rebind()
  await round({ kind: 'all' }, authority)
  t.equal(asked, 0, 'its plugin is off')
  channels.replace('demo', [record(), fixed])
  topics.rebind()
  await round({ kind: 'all' }, authority)
  t.equal(asked, 1, 'a channel without an id is in no project')
  t.same(
    ann.lost.map(([name]) => name),
    [`logs:${idOf(1)}`]
  )
  ann.lost.length = 0
  const [topic] = topics.list()
  topic?.delete(ann.connection)
  await round({ kind: 'user', id: 'ann' }, authority)
  t.equal(asked, 1)
  t.same(ann.lost, [])
})

test('a round lets others have their turn before each question and each answer, when its own is over', async t => {
  for (const isOver of [true, false]) {
    const readers = ['ann', 'bob', 'cy'].map(name => reader(name))
    const { round } = roundOf([[1, 'p', ...readers]])
    const passed: string[] = []
    const turns = { isOver, pass: async () => void passed.push('pass') } as unknown as Turns
    const authority: Authority = {
      decide: async () => ({ isGranted: true, project: 'p' }),
      decideIn: async (_, __, { user }) => {
        passed.push(user.id)
        return true
      }
    }
    await round({ kind: 'all' }, authority, turns)
    const questions = ['ann', 'bob', 'cy']
    t.same(
      passed,
      isOver ? [...questions.flatMap(user => ['pass', user]), 'pass', 'pass', 'pass'] : questions
    )
  }
})
