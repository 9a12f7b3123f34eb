import pino from 'pino'
import { test } from 'tap'
import { LogPoll } from '../kept/log-poll.js'
import type { KeptChunk } from '../kept/log-store.js'

const chunk = (ordinal: number): KeptChunk => ({
  ordinal,
  lines: 1,
  beginsAt: 0,
  times: '0',
  kinds: '2',
  text: 'x',
  container_id: 'a',
  deployment_id: null
})

/** What is kept, and how often it was looked at. */
function setUp() {
  const kept = new Map<string, { next: number; chunks: KeptChunk[] }>()
  const counts = { looks: 0, reads: 0 }
  const fault: { error?: Error } = {}
  const poll = new LogPoll({
    store: {
      progress: async ids => {
        counts.looks++
        if (fault.error !== undefined) throw fault.error
        return new Map(
          [...kept].filter(([id]) => ids.includes(id)).map(([id, { next }]) => [id, next] as const)
        )
      }
    },
    reads: {
      after: async (id, { from }) => {
        counts.reads++
        return (kept.get(id)?.chunks ?? []).filter(({ ordinal }) => ordinal >= from)
      }
    },
    clock: { sleep: async () => {} },
    log: pino({ level: 'silent' })
  })
  return { kept, counts, fault, poll }
}

test('however many follow a source, it is looked at once for all', async t => {
  const { kept, counts, poll } = setUp()
  kept.set('s', { next: 2, chunks: [chunk(0), chunk(1)] })
  const answers = await Promise.all(Array.from({ length: 1000 }, async () => await poll.after('s', 0, 1000)))
  t.ok(answers.every(chunks => chunks?.length === 2))
  t.equal(counts.looks, 1)
})

test('lines that are removed before they are read are not asked for again and again', async t => {
  const { kept, counts, poll } = setUp()
  kept.set('s', { next: 8, chunks: [] })
  t.same(await poll.after('s', 5, 1000), [], 'they were there when it was looked')
  for (let n = 0; n < 10; n++) t.same(await poll.after('s', 5, 1000), [])
  t.equal(counts.looks, counts.reads, 'each read follows a look of its own, and a look has its pause')
})

test('a source of which nothing is known is told from one with nothing new, and from a database that is away', async t => {
  const { kept, fault, poll } = setUp()
  t.equal(await poll.after('s', 0, 1000), undefined)
  kept.set('s', { next: 0, chunks: [] })
  t.same(await poll.after('s', 0, 1000), [])
  fault.error = new Error('away')
  t.same(await poll.after('s', 0, 1000), [])
  delete fault.error
  kept.delete('s')
  t.equal(await poll.after('s', 0, 1000), undefined)
})

test('what this process keeps of a source that is followed is given at once, and not read', async t => {
  const { kept, counts, poll } = setUp()
  kept.set('s', { next: 5, chunks: [] })
  const leave = poll.follow('s')
  const waiting = poll.after('s', 5, 1000)
  poll.kept('s', 7, [chunk(5), chunk(6)])
  t.same(await waiting, [chunk(5)])
  t.same(await poll.after('s', 6, 1000), [chunk(6)])
  t.equal(counts.reads, 0)
  kept.set('s', { next: 9, chunks: [chunk(7), chunk(8)] })
  const other = poll.after('s', 7, 1000)
  poll.kept('s', 9, undefined)
  t.same(await other, [chunk(7), chunk(8)], 'what they are is not known')
  t.equal(counts.reads, 1)
  leave()
  poll.kept('s', 10, [chunk(9)])
  kept.set('s', { next: 11, chunks: [chunk(9), chunk(10)] })
  poll.follow('s')
  poll.kept('s', 11, [chunk(10)])
  t.same(await poll.after('s', 9, 1000), [chunk(9), chunk(10)], 'nobody followed it meanwhile')
  poll.kept('s', 12, [chunk(11)])
  poll.begins()
  kept.set('s', { next: 14, chunks: [chunk(11), chunk(12), chunk(13)] })
  poll.kept('s', 14, [chunk(13)])
  t.same(await poll.after('s', 11, 1000), [chunk(11), chunk(12), chunk(13)], 'another process has kept some')
})
