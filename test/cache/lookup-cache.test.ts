import { test } from 'tap'
import { LookupCache } from '../../core/cache/lookup-cache.js'

const later = <T>() => {
  let settle: (value: T | undefined) => void = () => {}
  let fail: (error: Error) => void = () => {}
  const promise = new Promise<T | undefined>((resolve, reject) => {
    settle = resolve
    fail = reject
  })
  return { promise, settle: (value: T | undefined) => settle(value), fail: (error: Error) => fail(error) }
}

test('an answer is remembered, and one read serves all who ask meanwhile', async t => {
  const cache = new LookupCache<number>(10)
  const { promise, settle } = later<number>()
  let reads = 0
  const read = () => {
    reads++
    return promise
  }
  const both = Promise.all([cache.load('a', read), cache.load('a', read)])
  t.equal(cache.get('a'), undefined)
  settle(1)
  t.same(await both, [1, 1])
  t.equal(reads, 1)
  t.equal(cache.get('a'), 1)
})

test('what does not exist and what failed is asked for again', async t => {
  const cache = new LookupCache<number>(10)
  t.equal(await cache.load('a', async () => undefined), undefined)
  t.equal(await cache.load('a', async () => 1), 1)
  await t.rejects(
    cache.load('b', async () => await Promise.reject(new Error('down'))),
    { message: 'down' }
  )
  t.equal(await cache.load('b', async () => 2), 2)
})

test('an answer that was under way when its id was forgotten is not remembered', async t => {
  for (const forget of ['forget', 'forgetWhere', 'clear'] as const) {
    const cache = new LookupCache<number>(10)
    const { promise, settle } = later<number>()
    const first = cache.load('a', () => promise)
    if (forget === 'forget') cache.forget('a')
    else if (forget === 'clear') cache.clear()
    else cache.forgetWhere(() => false)
    const second = cache.load('a', async () => 2)
    settle(1)
    t.equal(await first, 1, 'who asked before gets it all the same')
    t.equal(await second, 2)
    t.equal(cache.get('a'), 2, forget)
  }
})

test('a read that was forgotten takes no later one with it', async t => {
  const cache = new LookupCache<number>(10)
  const [one, two] = [later<number>(), later<number>()]
  const first = cache.load('a', () => one.promise)
  cache.forget('a')
  const second = cache.load('a', () => two.promise)
  one.settle(1)
  await first
  let reads = 0
  const third = cache.load('a', async () => ++reads)
  two.settle(2)
  t.same(await Promise.all([second, third]), [2, 2])
  t.equal(reads, 0)
})

test('answers that match are forgotten in both generations', async t => {
  const cache = new LookupCache<number>(4)
  for (const n of [1, 2, 3]) await cache.load(String(n), async () => n)
  cache.forgetWhere(value => value !== 2)
  t.same(
    ['1', '2', '3'].map(id => cache.get(id)),
    [undefined, 2, undefined]
  )
  cache.forget('2')
  t.equal(cache.get('2'), undefined)
})

test('half of the capacity is kept through a turn, and what was not asked for since is forgotten', async t => {
  const cache = new LookupCache<number>(4)
  const put = async (n: number) => await cache.load(String(n), async () => n)
  for (const n of [1, 2, 3]) await put(n)
  t.equal(cache.get('1'), 1, 'an old answer becomes a young one')
  await put(4)
  t.equal(cache.get('1'), 1)
  t.equal(cache.get('2'), undefined)
  t.equal(cache.get('3'), 3)
  t.equal(cache.capacity, 4)
})

test('a generation is half of the capacity, and never is more remembered than the capacity', async t => {
  const cache = new LookupCache<number>(6)
  const numbers = [1, 2, 3, 4, 5, 6, 7]
  for (const n of numbers.slice(0, 6)) await cache.load(String(n), async () => n)
  await cache.load('7', async () => 7)
  // Asking moves what is old, so each is asked for once, the young ones first.
  t.same(
    [7, 6, 5, 4].map(n => cache.get(String(n))),
    [7, 6, 5, 4]
  )
  t.same(
    [1, 2, 3].map(n => cache.get(String(n))),
    [undefined, undefined, undefined]
  )
  const full = new LookupCache<number>(6)
  for (const n of numbers.slice(0, 6)) await full.load(String(n), async () => n)
  t.same(
    [6, 5, 4].map(n => full.get(String(n))),
    [6, 5, 4]
  )
  t.equal(full.get('1'), 1, 'six are remembered')
})
