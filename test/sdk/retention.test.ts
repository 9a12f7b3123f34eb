import { keepForDays } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { test } from 'tap'

const day = 86_400_000

/** So many old rows each time that it begins; when it was asked, and what it has said. */
function lab(days: number, ...left: number[]) {
  const clock = testClock('2026-03-01T10:00:00.000Z')
  const stop = new AbortController()
  const asked: string[] = []
  const said: unknown[] = []
  const ended = keepForDays({
    days,
    forget: async (before, atMost) => {
      asked.push(before.toISOString())
      const deleted = Math.min(atMost, left[0] ?? 0)
      left[0] = (left[0] ?? 0) - deleted
      if (left[0] <= 0) left.shift()
      return deleted
    },
    batch: 1_000,
    what: 'old rows',
    clock,
    log: { info: (...words: unknown[]) => void said.push(words) } as never,
    signal: stop.signal
  }).catch(() => 'stopped')
  return { clock, asked, said, ended, stop: () => stop.abort() }
}

test('old rows go at the start and once a day from then on, in batches', async t => {
  const { clock, asked, said, ended, stop } = lab(30, 2_400, 7)
  await clock.advance(0)
  t.same(asked, Array(3).fill('2026-01-30T10:00:00.000Z'), 'three batches')
  t.match(said, [[{ deleted: 2_400 }, 'old rows were deleted']])
  await clock.advance(day - 1)
  t.equal(asked.length, 3)
  await clock.advance(1)
  t.same(asked.slice(3), ['2026-01-31T10:00:00.000Z'])
  t.match(said.slice(1), [[{ deleted: 7 }, 'old rows were deleted']])
  await clock.advance(day)
  t.equal(asked.length, 5)
  t.equal(said.length, 2, 'nothing is said of nothing')
  stop()
  t.equal(await ended, 'stopped')
})

test('0 days keep everything', async t => {
  const { asked, ended } = lab(0, 5)
  await ended
  t.same(asked, [])
})
