import { test } from 'tap'
import type { KeptChunk } from '../kept/log-store.js'
import { RecentChunks } from '../kept/recent-chunks.js'

const chunk = (ordinal: number, lines = 1, text = 'x'): KeptChunk => ({
  ordinal,
  lines,
  beginsAt: 0,
  times: '0',
  kinds: '2',
  text,
  container_id: 'a',
  deployment_id: null
})

const ordinals = (chunks: readonly KeptChunk[] | undefined): number[] | undefined =>
  chunks?.map(({ ordinal }) => ordinal)

test('who keeps up is given each chunk of a source once, also behind lines of others', t => {
  const recent = new RecentChunks()
  recent.add('s', [chunk(10, 5), chunk(15, 2)])
  recent.add('r', [chunk(17, 3)])
  recent.add('s', [chunk(20, 4)])
  t.same(ordinals(recent.after('s', 10)), [10])
  t.same(ordinals(recent.after('s', 15)), [15])
  t.same(ordinals(recent.after('s', 17)), [20], 'what is between is of another source')
  t.same(ordinals(recent.after('r', 17)), [17])
  t.equal(recent.after('s', 24), undefined, 'there is no more')
  t.equal(recent.after('s', 12), undefined, 'in the middle of one')
  t.equal(recent.after('s', 9), undefined, 'something else may stand before the first of them')
  t.equal(recent.after('r', 10), undefined)
  t.equal(recent.after('s', 10), recent.after('s', 10), 'readers share what is made of it')
  t.end()
})

test('behind chunks that are not known, nothing follows from those before', t => {
  const recent = new RecentChunks()
  recent.add('s', [chunk(10, 5)])
  recent.forget('s')
  t.equal(recent.after('s', 10), undefined)
  recent.add('s', [chunk(30, 5)])
  t.equal(recent.after('s', 15), undefined)
  t.same(ordinals(recent.after('s', 30)), [30])
  recent.clear()
  t.equal(recent.after('s', 30), undefined)
  recent.add('s', [chunk(50)])
  t.equal(recent.after('s', 35), undefined)
  t.end()
})

test('it holds some MiB at most, and the oldest go first', t => {
  const recent = new RecentChunks()
  const text = 'x'.repeat(32 * 1024)
  for (let n = 0; n < 1000; n++) recent.add(n % 2 === 0 ? 's' : 'r', [chunk(n, 1, text)])
  const held = Array.from({ length: 1000 }, (_, n) => n).filter(
    n => recent.after(n % 2 === 0 ? 's' : 'r', n) !== undefined
  )
  t.ok(held.length * text.length <= 4 * 1024 * 1024, `${held.length}`)
  t.ok(held.length > 100, `${held.length}`)
  t.equal(held.at(-1), 999)
  t.equal(held[0], 1000 - held.length)
  recent.forget('s')
  for (let n = 1000; n < 1200; n++) recent.add('q', [chunk(n, 1, text)])
  t.equal(recent.after('r', 999), undefined)
  t.end()
})
