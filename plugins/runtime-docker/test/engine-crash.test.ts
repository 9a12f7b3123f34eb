import { test } from 'tap'
import { wentDownWithEngine } from '../engine-crash.js'

const outage = { lostAt: new Date('2026-01-31T12:00:00.000Z'), backAt: new Date('2026-01-31T12:00:10.000Z') }
const before = '2026-01-31T11:59:00.123456789Z'
const during = '2026-01-31T12:00:07.123456789Z'
const later = '2026-01-31T12:00:11.123456789Z'

const wentDown = (state: { Status: string; FinishedAt: string }, policy = 'unless-stopped'): boolean =>
  wentDownWithEngine({ State: state, HostConfig: { RestartPolicy: { Name: policy } } } as never, outage)

test('what should run and ended while the engine was away went down with it', async t => {
  t.ok(wentDown({ Status: 'exited', FinishedAt: during }))
  t.notOk(wentDown({ Status: 'exited', FinishedAt: before }), 'it had been stopped before')
  t.notOk(wentDown({ Status: 'exited', FinishedAt: later }), 'it has been stopped since')
  t.notOk(wentDown({ Status: 'running', FinishedAt: before }))
  t.notOk(wentDown({ Status: 'restarting', FinishedAt: during }), 'the engine sees to it')
  t.notOk(wentDown({ Status: 'created', FinishedAt: '0001-01-01T00:00:00Z' }))
  t.notOk(wentDown({ Status: 'exited', FinishedAt: during }, 'no'), 'a person stopped it')
})
