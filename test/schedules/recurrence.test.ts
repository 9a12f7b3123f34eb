import { isProblem, type Problem } from 'busbar/sdk'
import { test } from 'tap'
import { nextTime, nextTimes, recurrenceFault } from '../../core/declarations/recurrence.js'
import { decideFiring } from '../../core/schedules/due.js'

const at = (text: string): Date => new Date(text)

test('a cron expression is read in its time zone, across the changes of the clock', t => {
  const daily = { cron: '30 2 * * *', timeZone: 'Europe/Berlin' }
  t.same(nextTime(daily, at('2026-01-10T00:00:00Z')), at('2026-01-10T01:30:00Z'), 'winter')
  t.same(nextTime(daily, at('2026-07-10T00:00:00Z')), at('2026-07-10T00:30:00Z'), 'summer')
  const spring = nextTimes(daily, at('2026-03-28T12:00:00Z'), 2)
  t.equal(spring.length, 2)
  t.equal(
    spring[0]?.toISOString().slice(0, 10),
    '2026-03-29',
    'the day without a half past two has a run all the same'
  )
  const autumn = nextTimes(daily, at('2026-10-24T12:00:00Z'), 2)
  t.same(
    autumn.map(time => time.toISOString().slice(0, 10)),
    ['2026-10-25', '2026-10-26'],
    'the day with two of them has one run'
  )
  t.end()
})

test('six fields begin with seconds, names and @daily are understood, and an impossible date has no time', t => {
  t.same(nextTime({ cron: '*/10 * * * * *' }, at('2026-01-01T00:00:01Z')), at('2026-01-01T00:00:10Z'))
  t.same(nextTime({ cron: '0 9 * JAN MON' }, at('2026-01-01T00:00:00Z')), at('2026-01-05T09:00:00Z'))
  t.same(nextTime({ cron: '@daily' }, at('2026-01-01T05:00:00Z')), at('2026-01-02T00:00:00Z'))
  t.equal(nextTime({ cron: '0 0 30 2 *' }, at('2026-01-01T00:00:00Z')), null)
  t.end()
})

test('what is wrong with an expression or a time zone is a 400 that quotes it', t => {
  const problemOf = (recurrence: { cron: string; timeZone?: string }): Problem => {
    try {
      nextTime(recurrence, at('2026-01-01T00:00:00Z'))
    } catch (error) {
      if (isProblem(error)) return error
    }
    throw new Error('it was taken')
  }
  for (const cron of [
    '',
    '* * * *',
    '61 * * * *',
    'tomorrow',
    '* * * * * * *',
    '0 0 * * MONDAYS',
    '*'.repeat(10_000)
  ]) {
    const problem = problemOf({ cron })
    t.same([problem.status, problem.code], [400, 'E_SCHEDULE_CRON'], cron.slice(0, 20))
    t.ok(problem.message.length < 600, 'the words stay short')
  }
  const zone = problemOf({ cron: '* * * * *', timeZone: 'Mars/Olympus' })
  t.same([zone.status, zone.code], [400, 'E_SCHEDULE_TIME_ZONE'])
  t.match(zone.message, 'Mars/Olympus')
  t.match(recurrenceFault({ cron: 'x' }), '"x"')
  t.equal(recurrenceFault({ cron: '* * * * *' }), null)
  t.end()
})

test('a time that was missed is made up for once, or left out', t => {
  const due = { cron: '0 * * * *', nextAt: at('2026-01-01T01:00:00Z') }
  const soon = at('2026-01-01T01:00:30Z')
  const late = at('2026-01-01T05:30:00Z')
  t.same(
    decideFiring({ ...due, missed: 'skip' }, soon),
    { dueAt: due.nextAt, nextAt: at('2026-01-01T02:00:00Z') },
    'half a minute is not late'
  )
  t.same(decideFiring({ ...due, missed: 'skip' }, late), { dueAt: null, nextAt: at('2026-01-01T06:00:00Z') })
  t.same(decideFiring({ ...due, missed: 'run-once' }, late), {
    dueAt: due.nextAt,
    nextAt: at('2026-01-01T06:00:00Z')
  })
  t.end()
})
