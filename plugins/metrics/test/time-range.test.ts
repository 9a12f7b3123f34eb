/** Which time is asked for, and how finely it can be answered. */
import { test } from 'tap'
import { hostTiers } from '../host/host-store.js'
import { keptSince, mostPoints, readRange, tierFor, widthOf } from '../time-range.js'

const now = new Date('2026-01-31T12:00:00Z')
const ago = (hours: number): Date => new Date(now.getTime() - hours * 3_600_000)

test('a range reaches back from now, one hour unless another is named', t => {
  t.same(readRange({}, now), { from: ago(1), to: now })
  t.same(readRange({ range: '' }, now), { from: ago(1), to: now })
  t.same(readRange({ range: '14d' }, now), { from: ago(336), to: now })
  t.end()
})

test('from and to count before a range', t => {
  const [from, to] = ['2026-01-30T00:00:00Z', '2026-01-30T06:00:00+01:00']
  t.same(readRange({ range: '7d', from, to }, now), { from: new Date(from), to: new Date(to) })
  t.same(readRange({ from }, now), { from: new Date(from), to: now })
  t.same(readRange({ range: '6h', to: from }, now), {
    from: new Date('2026-01-29T18:00:00Z'),
    to: new Date(from)
  })
  t.same(readRange({ from: '2026-01-31T13:00:00 01:00', to: '' }, now), { from: now, to: now })
  t.end()
})

test('what is malformed, unknown or reversed is refused by name', t => {
  const refused = (query: object, field: string): void => {
    try {
      readRange(query, now)
      t.fail(`${JSON.stringify(query)} is taken`)
    } catch (error) {
      t.match(error, { status: 400, details: { field } })
    }
  }
  refused({ range: '2h' }, 'range')
  refused({ range: '__proto__' }, 'range')
  refused({ from: 'yesterday' }, 'from')
  refused({ to: '2026-13-01T00:00:00Z' }, 'to')
  refused({ from: '2026-02-01T00:00:00Z' }, 'from')
  t.end()
})

test('the finest tier answers that reaches back far enough', t => {
  const stepFor = (hours: number): number =>
    tierFor(hostTiers, { from: ago(hours), to: now }, now).stepSeconds
  t.same([1, 6, 24, 168, 336, 337, 24 * 91].map(stepFor), [1, 10, 10, 60, 60, 600, 3600])
  t.end()
})

test('no answer has more than a thousand parts, and none is finer than what was kept', t => {
  const widthFor = (hours: number): number => {
    const range = { from: ago(hours), to: now }
    return widthOf(range, tierFor(hostTiers, range, now))
  }
  t.same([1 / 60, 1, 24, 336].map(widthFor), [1000, 3600, 86_400, 1_209_600])
  for (const hours of [0, 0.3, 1, 7, 25, 400, 90_000])
    t.ok((hours * 3_600_000) / widthFor(hours) <= mostPoints, `${hours} hours`)
  t.end()
})

test('points are kept as long as their tier and the retention say', t => {
  const [finest] = hostTiers
  t.same(keptSince(finest, 336, now), ago(2))
  t.same(keptSince(finest, 1, now), ago(1))
  t.same(keptSince(hostTiers[4], 87_600, now), ago(87_600))
  t.end()
})
