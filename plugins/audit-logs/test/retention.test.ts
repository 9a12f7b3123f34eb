import type { AuditLog } from 'busbar/sdk'
import { testClock } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { keepForDays } from '../retention.js'

const log = pino({ level: 'silent' })
const day = 86_400_000

/** A log with so many old records each time it is asked; what it was asked is kept. */
function oldRecords(...left: number[]): AuditLog & { readonly asked: Date[] } {
  const asked: Date[] = []
  return {
    table: 'nothing',
    asked,
    forget: async (before, atMost) => {
      asked.push(before)
      const deleted = Math.min(atMost, left[0] ?? 0)
      left[0] = (left[0] ?? 0) - deleted
      if (left[0] <= 0) left.shift()
      return deleted
    },
    record: async () => {}
  }
}

test('old records go at the start and once a day from then on, in batches', async t => {
  const clock = testClock('2026-03-01T10:00:00.000Z')
  const audit = oldRecords(12_000, 7)
  const stop = new AbortController()
  const ended = keepForDays(30, { audit, clock, log, signal: stop.signal }).catch(() => 'stopped')
  await clock.advance(0)
  t.same(
    audit.asked.map(date => date.toISOString()),
    Array(3).fill('2026-01-30T10:00:00.000Z'),
    'three batches of 5 000'
  )
  await clock.advance(day - 1)
  t.equal(audit.asked.length, 3)
  await clock.advance(1)
  t.same(
    audit.asked.slice(3).map(date => date.toISOString()),
    ['2026-01-31T10:00:00.000Z']
  )
  stop.abort()
  t.equal(await ended, 'stopped')
})

test('0 days keeps everything', async t => {
  const audit = oldRecords(5)
  await keepForDays(0, { audit, clock: testClock(), log, signal: new AbortController().signal })
  t.same(audit.asked, [])
})
