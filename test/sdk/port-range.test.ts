import { test } from 'tap'
import { claimPortRange } from '../../sdk/testing/port-range.js'

test('ranges of ports that are claimed at a time have no port in common', async t => {
  const ranges = await Promise.all(Array.from({ length: 5 }, async () => await claimPortRange()))
  const [first, ...others] = ranges
    .map(range => range.split('-').map(Number))
    .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
  let [from = 0, to = 0] = first ?? []
  for (const [nextFrom = 0, nextTo = 0] of others) {
    t.ok(from <= to && to < nextFrom, `${from}-${to} ends before ${nextFrom}`)
    ;[from, to] = [nextFrom, nextTo]
  }
})
