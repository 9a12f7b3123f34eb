import { event, type RaisedNotification } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { type Test, test } from 'tap'
import { notificationRecord } from '../../core/declarations/notification-kinds.js'
import { EventHub } from '../../core/events/events.js'
import { freshPostgres, log } from '../database/database-kit.js'
import { startJobs } from './job-kit.js'

const clock = testClock('2026-03-01T10:00:00.000Z')
const sold = event<{ item: string; buyer: string }>('shop.sold')
const buyer = '3f0c9a52-7d5e-4b1e-8a64-1f0f3b1c9d11'
const told = notificationRecord('shop', 'shop.sold', {
  type: 'item.sold',
  label: 'Item sold',
  description: 'Something was sold.',
  group: 'Shop',
  severity: 'ok',
  audience: { user: 'buyer' },
  title: '{item} is yours'
})

async function setUp(t: Test) {
  const postgres = await freshPostgres(t)
  const jobs = await startJobs(t, postgres)
  const events = new EventHub({ jobs, clock, log })
  const sell = async (item: unknown) => {
    await postgres.transaction(async tx => {
      await events.for('shop').emit(sold, { item: item as string, buyer }, tx)
    })
  }
  const hear = async (plugin: string, listen: (raised: RaisedNotification) => void): Promise<void> => {
    const run = async (raised: RaisedNotification) => listen(raised)
    await jobs.add(plugin, events.subscribe(plugin, [], [run]))
  }
  return { postgres, jobs, events, sell, hear }
}

test('a declared notification reaches every plugin that listens, with one id, filled in when the event was emitted', async t => {
  const { events, sell, hear, jobs } = await setUp(t)
  const seen = new Map<string, RaisedNotification[]>([
    ['inbox', []],
    ['chat', []]
  ])
  for (const [plugin, list] of seen) await hear(plugin, raised => list.push(raised))
  await sell('Nothing is declared, and the bicycle')
  events.declare('shop', [told])
  await jobs.remove('inbox')
  await sell('The bicycle')
  // The plugin that emitted it is off before it is delivered.
  events.unsubscribe('shop')
  await sell('Nothing is declared any more, and the bicycle')
  await hear('inbox', raised => seen.get('inbox')?.push(raised))
  await until(() => seen.get('inbox')?.length === 1 && seen.get('chat')?.length === 1, 'both were told')
  const [[atInbox], [atChat]] = [...seen.values()] as [RaisedNotification[], RaisedNotification[]]
  t.same(atInbox, atChat)
  t.match(atInbox, {
    id: /^[0-9a-f-]{36}$/,
    type: 'item.sold',
    severity: 'ok',
    audience: { kind: 'user', userId: buyer, projectId: null },
    preference: null,
    title: 'The bicycle is yours',
    body: '',
    link: null,
    occurredAt: new Date('2026-03-01T10:00:00.000Z')
  })
})

test('one that could not be dealt with comes again with the same id', async t => {
  const { events, sell, hear } = await setUp(t)
  events.declare('shop', [told])
  const ids: string[] = []
  await hear('inbox', ({ id }) => {
    ids.push(id)
    if (ids.length === 1) throw new Error('once')
  })
  await sell('The bicycle')
  await until(() => ids.length === 2, 'it came twice')
  t.equal(ids[0], ids[1])
})

test('without a listener nothing is stored, and an event that cannot be told of is committed all the same', async t => {
  const { postgres, events, sell, hear } = await setUp(t)
  events.declare('shop', [told])
  await sell('The bicycle')
  t.same(await postgres.query('select from graphile_worker.jobs'), [])
  const titles: string[] = []
  await hear('inbox', ({ title }) => titles.push(title))
  await sell(undefined)
  await until(() => titles.length === 1, 'it was told of')
  t.same(titles, ['is yours'])
  const hostile = {
    get item(): string {
      throw new Error('a getter')
    },
    buyer
  }
  t.same(events.notificationFaults, [
    'the notification "item.sold" of the plugin "shop": its event has neither text nor number in "item", which its words name'
  ])
  await postgres.transaction(async tx => {
    await events.for('shop').emit(sold, hostile, tx)
  })
  t.same(events.notificationFaults.slice(1), ['the event shop.sold could not be read: a getter'])
})

test('what is declared is listed by group and type, as long as its plugin is on', t => {
  const events = new EventHub({ jobs: { submit: async () => {} }, clock, log })
  const kind = (type: string, group: string) =>
    notificationRecord('shop', 'shop.sold', {
      ...told,
      preference: 'deploy_success',
      link: '/x',
      type,
      group
    } as never)
  events.declare('shop', [kind('b.b', 'Z'), kind('a.c', 'Z'), kind('c.a', 'A'), kind('b.b', 'Z')])
  t.same(
    events.notificationKinds().map(({ type }) => type),
    ['c.a', 'a.c', 'b.b']
  )
  t.same(events.notificationKinds()[0], {
    type: 'c.a',
    label: 'Item sold',
    description: 'Something was sold.',
    group: 'A',
    severity: 'ok'
  })
  events.unsubscribe('shop')
  t.same(events.notificationKinds(), [])
  t.end()
})
