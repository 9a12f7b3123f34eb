import { test } from 'tap'
import { WorkerShare } from '../../core/jobs/worker-share.js'

/** How many workers of a lane each of the plugins gets, in turn, until nobody gets one. */
function taken(share: WorkerShare, lane: 'short' | 'long', plugins: readonly string[]): string[] {
  const takers: string[] = []
  for (const plugin of plugins)
    while (!share.isUsedUp(plugin, lane) && takers.length < 100) {
      share.take(plugin, lane)
      takers.push(plugin)
    }
  return takers
}

test('one plugin holds half of the workers of a lane, and all together leave one', async t => {
  const share = new WorkerShare({ short: 6, long: 12 })
  t.same(taken(share, 'short', ['a', 'b', 'c']), ['a', 'a', 'a', 'b', 'b'])
  t.equal(taken(share, 'long', ['a', 'b', 'c']).length, 11, 'the lanes have nothing to do with each other')
})

test('who gives one back may take one again, and no more', async t => {
  const share = new WorkerShare({ short: 4, long: 1 })
  t.same(taken(share, 'short', ['a', 'b']), ['a', 'a', 'b'])
  share.give('a', 'short')
  t.ok(share.isUsedUp('b', 'short') === false, 'it is free for everybody')
  t.same(taken(share, 'short', ['a', 'b']), ['a'])
  for (const plugin of ['a', 'a', 'b']) share.give(plugin, 'short')
  t.same(taken(share, 'short', ['b', 'a']), ['b', 'b', 'a'], 'and at last all of them are')
})

test('where there are few workers, a plugin still gets one', async t => {
  for (const workers of [1, 2, 3]) {
    const share = new WorkerShare({ short: workers, long: 12 })
    t.equal(taken(share, 'short', ['a']).length, 1, `of ${workers}`)
  }
  t.equal(taken(new WorkerShare({ short: 1, long: 1 }), 'short', ['a', 'b']).length, 1)
})
