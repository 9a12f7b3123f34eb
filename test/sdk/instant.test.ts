import { instantIn } from 'busbar/sdk'
import { test } from 'tap'

test('a time in RFC 3339 is read with its offset, escaped or not', t => {
  for (const text of [
    '2026-01-01T02:00:00+02:00',
    '2026-01-01T02:00:00 02:00',
    '2026-01-01 00:00Z',
    '2025-12-31t23:00:00.000-01:00',
    '2026-01-01T00:00:00.000Z'
  ])
    t.same(instantIn(text), new Date('2026-01-01T00:00:00Z'), text)
  t.same(instantIn('2024-02-29T00:00:00Z'), new Date('2024-02-29T00:00:00Z'), 'a leap year')
  t.end()
})

test('what is no time, or none of the calendar, is none', t => {
  for (const text of [
    '',
    'soon',
    '2026',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '+12026-01-01T00:00:00Z'
  ])
    t.equal(instantIn(text), undefined, text)
  t.end()
})
