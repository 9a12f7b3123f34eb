import { test } from 'tap'
import { type FoundLine, FoundPage } from '../kept/found-page.js'

const lines = (count: number, length = 1): FoundLine[] =>
  Array.from({ length: count }, (_, ordinal) => ({
    ms: 0,
    nanos: 0,
    kind: 0,
    message: 'x'.repeat(length),
    ordinal,
    containerId: 'a',
    deploymentId: null
  }))
const ordinals = (page: FoundPage): number[] => page.lines.map(({ ordinal }) => ordinal)

test('a page has what stands behind its offset, and knows whether there is more', t => {
  const page = new FoundPage(3, 2)
  page.add(lines(5))
  t.same(ordinals(page), [3, 4])
  t.equal(page.hasMore, false)
  t.equal(page.seen, 5)
  page.add([])
  t.equal(page.hasMore, false)
  page.add(lines(1))
  t.equal(page.hasMore, true)
  t.same(ordinals(page), [3, 4])
  t.end()
})

test('a page far behind the first holds none of the lines before it', t => {
  const page = new FoundPage(1_000_000, 10)
  page.add(lines(1000))
  t.same(page.lines, [])
  t.equal(page.seen, 1000)
  t.equal(page.hasMore, false)
  t.end()
})

test('a page of long lines ends early, with one of them at least', t => {
  const page = new FoundPage(0, 1000)
  page.add(lines(1000, 16_384))
  t.equal(page.lines.length, 64)
  t.equal(page.hasMore, true)
  const longest = new FoundPage(0, 1000)
  longest.add(lines(2, 5_000_000))
  t.equal(longest.lines.length, 1)
  t.equal(longest.hasMore, true)
  t.end()
})
