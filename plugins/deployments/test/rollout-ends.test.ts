import { type Bus, type Log, Problem } from 'busbar/sdk'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { cancelTopic, watchCancel } from '../rollout/cancel-watch.js'
import { retryDuringOutage } from '../rollout/database-outage.js'
import { Cancelled, DeployFailure, failureOf, isExpected } from '../rollout/deploy-failure.js'
import { orStopped } from '../rollout/drain-limit.js'

test('a failure says its reason and its remedy, and whatever else was thrown is an internal error', async t => {
  t.match(new DeployFailure('it is full', 'empty it', 'du'), {
    message: 'it is full: empty it',
    reason: 'it is full',
    remedy: 'empty it',
    evidence: 'du'
  })
  t.match(new DeployFailure('it is full'), { message: 'it is full', remedy: null, evidence: null })
  const own = new Cancelled()
  t.equal(failureOf(own), own)
  t.match(own, { message: 'cancelled', remedy: null })
  const problem = new Problem(409, 'E_X', 'the port is taken')
  t.match(failureOf(problem), { reason: 'the port is taken', remedy: null })
  const internal = { remedy: 'the log of the platform has the details' }
  t.match(failureOf(new Error('broken')), { ...internal, reason: 'an internal error: broken' })
  t.match(failureOf('a text'), { ...internal, reason: 'an internal error: a text' })
  t.same(
    [own, problem, new Error('broken'), undefined].map(error => isExpected(error)),
    [true, true, false, false]
  )
})

test('a drain ends with its work, or at once when the platform stops', async t => {
  const stop = new AbortController()
  t.equal(await orStopped(Promise.resolve(1), stop.signal), 1)
  t.equal(await orStopped(undefined, stop.signal), undefined)
  await t.rejects(orStopped(Promise.reject(new Error('lost')), stop.signal), { message: 'lost' })
  const waiting = orStopped(new Promise(() => {}), stop.signal)
  stop.abort(new Error('stopping'))
  await t.rejects(waiting, { message: 'stopping' })
  await t.rejects(orStopped(Promise.resolve(1), stop.signal), { message: 'stopping' }, 'before anything')
})

/** A watch of deployment `d`, whose row says what `answer` says. */
function watched() {
  const clock = testClock()
  const warnings: object[] = []
  const listeners = new Set<(data: string) => void>()
  const asked: string[] = []
  const row = { answer: async (): Promise<boolean> => false }
  const watch = watchCancel('d', {
    clock,
    bus: {
      onSignal: (topic: string, listener: (data: string) => void) => {
        if (topic === cancelTopic) listeners.add(listener)
        return () => listeners.delete(listener)
      }
    } as unknown as Bus,
    log: { warn: (line: object) => warnings.push(line) } as unknown as Log,
    store: {
      touch: async (id: string) => {
        asked.push(id)
        return await row.answer()
      }
    } as never
  })
  return { clock, warnings, listeners, asked, row, watch }
}

test('a cancel is seen in the row within two seconds, and at once by a signal', async t => {
  const { clock, asked, row, watch, listeners } = watched()
  await clock.advance(1999)
  t.same(asked, [])
  await clock.advance(1)
  t.same(asked, ['d'])
  t.equal(watch.signal.aborted, false)
  for (const tell of listeners) tell('another')
  t.equal(asked.length, 1, 'that is not about this one')
  row.answer = async () => true
  for (const tell of listeners) tell('d')
  t.equal(asked.length, 2)
  await until(() => watch.signal.aborted, 'the cancel is seen')
  t.ok(watch.signal.reason instanceof Cancelled)
  watch.stop()
})

test('a row that cannot be read cancels nothing and is looked at again, until the watch is stopped', async t => {
  const { clock, asked, row, watch, listeners, warnings } = watched()
  row.answer = async () => await Promise.reject(new Error('away'))
  await clock.advance(2000)
  t.match(warnings, [{ err: { message: 'away' }, deploymentId: 'd' }])
  t.equal(watch.signal.aborted, false)
  await clock.advance(2000)
  t.equal(asked.length, 2)
  watch.stop()
  await clock.advance(10_000)
  t.equal(asked.length, 2)
  t.equal(listeners.size, 0)
})

test('an outage of the database is waited for, and any other failure is not', async t => {
  const clock = testClock()
  const ended = new AbortController()
  const { signal } = ended
  let calls = 0
  const failing = (times: number, code: string) => async () => {
    if (++calls <= times) throw new Problem(503, code, 'away')
    return 'done'
  }
  for (const code of [
    'E_DATABASE_UNREACHABLE',
    'E_DATABASE_BUSY',
    'E_DATABASE_LOCKED',
    'E_DATABASE_LOCK_ROOM'
  ]) {
    calls = 0
    const running = retryDuringOutage(failing(3, code), { clock, signal })
    await clock.advance(100 + 200 + 400)
    t.equal(await running, 'done', code)
    t.equal(calls, 4)
  }
  calls = 0
  await t.rejects(retryDuringOutage(failing(1, 'E_OTHER'), { clock, signal }), { code: 'E_OTHER' })
  t.equal(calls, 1)
  const waiting = retryDuringOutage(failing(99, 'E_DATABASE_BUSY'), { clock, signal })
  const stopped = t.rejects(waiting, { message: 'stopping' })
  await clock.advance(0)
  ended.abort(new Error('stopping'))
  await stopped
  calls = 0
  await t.rejects(
    retryDuringOutage(failing(99, 'E_DATABASE_BUSY'), { clock, signal }),
    { code: 'E_DATABASE_BUSY' },
    'what was seen, when it had stopped before'
  )
  t.equal(calls, 1)
})
