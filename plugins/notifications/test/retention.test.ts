import { createTestKernel, testClock, until } from 'busbar/sdk/testing'
import { pino } from 'pino'
import { test } from 'tap'
import { keepForDays } from '../retention.js'
import { holds, tell, titlesOf, toUser } from './inbox-lab.js'

const log = pino({ level: 'silent' })
const day = 86_400_000

test('old notifications go at the start and once a day from then on, in batches', async t => {
  const clock = testClock('2026-06-01T10:00:00.000Z')
  const asked: string[] = []
  const left = [2_400]
  const notices = {
    forget: async (before: Date, atMost: number) => {
      asked.push(before.toISOString())
      const deleted = Math.min(atMost, left[0] ?? 0)
      left[0] = (left[0] ?? 0) - deleted
      return deleted
    }
  }
  const stop = new AbortController()
  const ended = keepForDays(90, { notices, clock, log, signal: stop.signal }).catch(() => 'stopped')
  await clock.advance(0)
  t.same(asked, Array(3).fill('2026-03-03T10:00:00.000Z'), 'three batches of 1 000')
  await clock.advance(day)
  t.same(asked.slice(3), ['2026-03-04T10:00:00.000Z'])
  stop.abort()
  t.equal(await ended, 'stopped')
  await keepForDays(0, { notices, clock, log, signal: new AbortController().signal })
  t.equal(asked.length, 4, '0 days keeps everything')
})

test('a notification is kept for as many days as the setting says', async t => {
  const k = await createTestKernel()
  t.teardown(() => k.close())
  const ann = await k.as.session('ann')
  const aged = (days: number): Date => new Date(Date.now() - days * day)
  const audience = toUser(ann.userId)
  await tell(k, { audience, title: 'of 91 days ago', occurredAt: aged(91) })
  await tell(k, { audience, title: 'of 89 days ago', occurredAt: aged(89) })
  await tell(k, { audience, title: 'of today' })
  await holds(ann, 3)
  await k.configure('notifications', { retention_days: 90 })
  await holds(ann, 2)
  t.same(await titlesOf(ann), ['of today', 'of 89 days ago'])
  await k.configure('notifications', { retention_days: 30 })
  await holds(ann, 1)
  await until(
    async () => (await k.query('select 1 from notifications.notice')).length === 1,
    'nothing of it is left'
  )
  t.same(await k.query('select position from notifications.entry'), [{ position: 3 }])
})
