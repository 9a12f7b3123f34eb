import { test } from 'tap'
import { framed } from '../../core/frames/framed.js'

test('what a plugin gives is called as it is, by one function for each of its methods', async t => {
  class Counter {
    #count = 0
    next(): number {
      return ++this.#count
    }
    get size(): number {
      return this.#count
    }
  }
  const counter = framed('counter', new Counter())
  t.equal(counter.next(), 1)
  t.equal(counter.next(), 2)
  t.equal(counter.size, 2)
  t.equal(counter.next, counter.next)
  t.ok(counter instanceof Counter)
  t.ok('next' in counter)
  const listed = framed('lists', [1, 2])
  t.same(listed, [1, 2])
  t.equal(framed('text', 'plain'), 'plain')
  t.equal(framed('nothing', null), null)
  t.equal(framed('doubles', (n: number) => n * 2)(21), 42)
})

test('it cannot be written to, and looks like what it stands for', async t => {
  const given = framed('fixed', Object.freeze({ a: 1, b: () => 2 }))
  t.throws(() => {
    ;(given as { a: number }).a = 3
  }, TypeError)
  t.same(Object.keys(given), ['a', 'b'])
  t.equal(given.b(), 2)
})

test('what it throws is an error, whatever was thrown', async t => {
  const given = framed('throws', {
    now: () => {
      throw null
    },
    later: async () => await Promise.reject(undefined)
  })
  t.throws(() => given.now(), Error)
  await t.rejects(given.later(), Error)
})
