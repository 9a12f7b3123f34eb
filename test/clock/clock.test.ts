import { setTimeout as wait } from 'node:timers/promises'
import { testClock, until } from 'busbar/sdk/testing'
import { test } from 'tap'
import { systemClock } from '../../core/clock/clock.js'

test('the system clock sleeps, and an abort ends the sleep with its reason', async t => {
  const clock = systemClock()
  const before = clock.now().getTime()
  await clock.sleep(20)
  t.ok(clock.now().getTime() - before >= 19)
  const reason = new Error('enough')
  await t.rejects(clock.sleep(1000, AbortSignal.abort(reason)), reason)
  const controller = new AbortController()
  const sleeping = clock.sleep(1000, controller.signal)
  controller.abort(reason)
  await t.rejects(sleeping, reason)
})

test('a sleep of months does not end at once, nor wakes up all the time', async t => {
  const clock = systemClock()
  const warnings: string[] = []
  const note = ({ name }: Error): void => void warnings.push(name)
  process.on('warning', note)
  t.teardown(() => process.off('warning', note))
  const controller = new AbortController()
  const sleeping = clock.sleep(2 ** 32, controller.signal)
  t.equal(await Promise.race([sleeping, wait(30, 'still asleep')]), 'still asleep')
  t.notOk(warnings.includes('TimeoutOverflowWarning'), 'no timer takes more than 2³¹ − 1 ms')
  controller.abort(new Error('over'))
  await t.rejects(sleeping, { message: 'over' })
})

test('every never runs twice at a time, goes on after an error, and stops', async t => {
  const errors: unknown[] = []
  const clock = systemClock({ onError: error => errors.push(error) })
  let running = 0
  let most = 0
  let runs = 0
  const stop = clock.every(5, async () => {
    most = Math.max(most, ++running)
    await wait(12)
    running--
    runs++
    throw new Error('every time')
  })
  await until(() => runs >= 3, 'three runs')
  stop()
  await until(() => running === 0, 'the last run ends')
  const after = runs
  t.equal(most, 1)
  t.equal(errors.length, runs)
  await wait(40)
  t.equal(runs, after)
  t.throws(() => clock.every(0, () => {}), RangeError)
})

test('the test clock moves when told, and wakes sleepers in order', async t => {
  const clock = testClock('2026-05-01T00:00:00Z')
  const order: string[] = []
  void clock.sleep(300).then(() => order.push('late'))
  void clock.sleep(100).then(async () => {
    order.push(`early ${clock.now().getTime() % 1000}`)
    await clock.sleep(100)
    order.push(`again ${clock.now().getTime() % 1000}`)
  })
  await wait(5)
  t.same(order, [])
  await clock.advance(250)
  t.same(order, ['early 100', 'again 200'])
  t.equal(clock.now().toISOString(), '2026-05-01T00:00:00.250Z')
  await clock.advance(50)
  t.same(order, ['early 100', 'again 200', 'late'])
})

test('an interval of the test clock runs once for each of its points, and advance waits for it', async t => {
  const clock = testClock()
  let done = 0
  const stop = clock.every(1000, async () => {
    await wait(5)
    done++
  })
  await clock.advance(3500)
  t.equal(done, 3)
  stop()
  await clock.advance(5000)
  t.equal(done, 3)
})

test('a run that sleeps on the test clock does not hold it', async t => {
  const clock = testClock()
  let done = 0
  const stop = clock.every(1000, async () => {
    await clock.sleep(1500)
    done++
  })
  await clock.advance(2500)
  t.equal(done, 1)
  stop()
})

test('what has elapsed is the same, whatever the clock of the machine is set to', async t => {
  const real = systemClock()
  const begun = real.elapsed()
  await real.sleep(20)
  t.ok(real.elapsed() - begun >= 19)
  const clock = testClock('2026-05-01T00:00:00Z')
  const before = clock.elapsed()
  await clock.advance(500)
  clock.set(-3_600_000)
  t.equal(clock.now().toISOString(), '2026-04-30T23:00:00.500Z')
  let isAwake = false
  void clock.sleep(1000).then(() => {
    isAwake = true
  })
  clock.set(7_200_000)
  await clock.advance(999)
  t.equal(isAwake, false)
  await clock.advance(1)
  t.equal(isAwake, true)
  t.equal(clock.elapsed() - before, 1500)
})
