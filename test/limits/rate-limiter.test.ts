import { test } from 'tap'
import { maxWindows, RateLimiter } from '../../core/limits/rate-limiter.js'
import { testClock } from '../../sdk/testing/test-clock.js'

test('a window begins with its first request, and takes so many', async t => {
  const clock = testClock(0)
  const limiter = new RateLimiter(clock)
  t.same(limiter.take('a', 2, 1000), { allowed: true, limit: 2, remaining: 1, resetAt: 1000 })
  await clock.advance(999)
  t.same(limiter.take('a', 2, 1000), { allowed: true, limit: 2, remaining: 0, resetAt: 1000 })
  t.same(limiter.take('a', 2, 1000), { allowed: false, limit: 2, remaining: 0, resetAt: 1000 })
  t.equal(limiter.take('b', 2, 1000).allowed, true, 'keys are apart')
  await clock.advance(1)
  t.same(limiter.take('a', 2, 1000), { allowed: true, limit: 2, remaining: 1, resetAt: 2000 })
  limiter.reset()
  t.equal(limiter.size, 0)
  t.equal(limiter.take('a', 2, 1000).remaining, 1)
})

test('windows that have ended make room, and in a flood those that began first', async t => {
  const clock = testClock(0)
  const limiter = new RateLimiter(clock)
  limiter.take('old', 1, 1000)
  limiter.take('older', 1, 1000)
  await clock.advance(1000)
  limiter.take('new', 1, 1000)
  t.equal(limiter.size, 1)
  for (let n = 0; n < maxWindows - 1; n++) limiter.take(String(n), 1, 1000)
  t.equal(limiter.size, maxWindows)
  limiter.take('one more', 1, 1000)
  t.equal(limiter.size, maxWindows)
  t.equal(limiter.take('0', 1, 1000).allowed, false, 'the second is still there')
  t.equal(limiter.take('new', 1, 1000).allowed, true, 'the first has gone')
})

test('a window is over when its time has gone by, also where the clock of the machine was set back', async t => {
  const clock = testClock(10_000_000)
  const limiter = new RateLimiter(clock)
  limiter.take('a', 1, 1000)
  clock.set(-3_600_000)
  t.match(limiter.take('a', 1, 1000), { allowed: false, resetAt: 10_001_000 - 3_600_000 })
  await clock.advance(1000)
  t.equal(limiter.take('a', 1, 1000).allowed, true)
  clock.set(7_200_000)
  t.equal(limiter.take('a', 1, 1000).allowed, false, 'forward, and nobody has more than their budget')
})
